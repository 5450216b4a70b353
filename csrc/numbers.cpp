#include "numbers.h"

NumberLayout g_number_layout = NumberLayout::kUnknown;

namespace {

// Whether an int is read as the C API reads it, and as small just when it is.
bool IsReadRight(NumberLayout layout, long long number) {
  const Ref object(PyLong_FromLongLong(number));
  if (!object) return false;
  constexpr long long kDigit = 1LL << 30;
  const bool is_small = number > -kDigit && number < kDigit;
  int64_t value = 0;
  if (numbers::ReadSmall(layout, object.get(), &value) != is_small) return false;
  return !is_small || value == number;
}

bool IsReadRight(double number) {
  const Ref object(PyFloat_FromDouble(number));
  return object && std::memcmp(&reinterpret_cast<const numbers::Behind*>(object.get())->value,
                               &number, sizeof number) == 0;
}

bool IsRight(NumberLayout layout) {
  for (int bit = 0; bit < 62; ++bit) {
    for (const long long near : {-1, 0, 1}) {
      const long long number = (1LL << bit) + near;
      if (!IsReadRight(layout, number) || !IsReadRight(layout, -number)) return false;
    }
  }
  for (const double number : {0.0, -0.0, 1.0, -2.5, 1e300, 5e-324}) {
    if (!IsReadRight(number)) return false;
  }
  return true;
}

}  // namespace

void FindNumberLayout() {
  // Reading a layout that is not there would read behind an object.
  if (sizeof(void*) != 8 || sizeof(PyObject) + 8 > 32) return;
#if PY_VERSION_HEX < 0x030b0000
  const unsigned long version = PY_VERSION_HEX;
#else
  const unsigned long version = Py_Version;  // of the interpreter, not of its headers
#endif
  const NumberLayout layout = version >= 0x030c0000 ? NumberLayout::kTagged : NumberLayout::kSigned;
  if (version < 0x030f0000 && IsRight(layout)) g_number_layout = layout;
  PyErr_Clear();
}
