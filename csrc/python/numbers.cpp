#include "python/numbers.h"

#include <cstring>

bool g_numbers_are_known = false;

namespace {

bool are_as_believed = false;  // the result of the trial

// Whether an int is read as the C API reads it, and as a small int exactly if it is one.
bool IsReadRight(long long number) {
  const Ref object(PyLong_FromLongLong(number));
  if (!object) return false;
  constexpr long long kDigit = 1LL << 30;
  const bool is_small = number > -kDigit && number < kDigit;
  int64_t value = 0;
  if (numbers::ReadSmall(object.get(), &value) != is_small) return false;
  return !is_small || value == number;
}

bool IsReadRight(double number) {
  const Ref object(PyFloat_FromDouble(number));
  return object && std::memcmp(&reinterpret_cast<const numbers::Behind*>(object.get())->value,
                               &number, sizeof number) == 0;
}

bool AreReadRight() {
  for (int bit = 0; bit < 62; ++bit) {
    for (const long long near : {-1, 0, 1}) {
      const long long number = (1LL << bit) + near;
      if (!IsReadRight(number) || !IsReadRight(-number)) return false;
    }
  }
  for (const double number : {0.0, -0.0, 1.0, -2.5, 1e300, 5e-324}) {
    if (!IsReadRight(number)) return false;
  }
  return true;
}

}  // namespace

CULAUNCH_APART LargeInt ReadLargeInt(PyObject* object) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow == 0) return {IntRange::kSigned, value};
  if (overflow < 0) return {IntRange::kTooLarge, 0};
  const unsigned long long bits = PyLong_AsUnsignedLongLong(object);
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return {IntRange::kTooLarge, 0};
  }
  return {IntRange::kUnsigned, static_cast<int64_t>(bits)};
}

bool TryNumbers(unsigned long version) {
  if (version == 0) {
#if PY_VERSION_HEX < 0x030b0000
    version = PY_VERSION_HEX;
#else
    version = Py_Version;  // the interpreter's, not the headers'
#endif
  }
  // A wrong layout would read past an object. With an unknown version, even the test could do this,
  // so it is not run.
  const bool may_be = sizeof(void*) == 8 && sizeof(PyObject) + 8 <= 32 && version < 0x030f0000;
  are_as_believed = may_be && AreReadRight();
  PyErr_Clear();
  UseNumbers(true);
  return g_numbers_are_known;
}

void UseNumbers(bool use) { g_numbers_are_known = use && are_as_believed; }
