#include "formats/mangled_names.h"

#include <culaunch/demangle.h>

#include "formats/itanium/spelling.h"

namespace {

// A string as bytes. Names in images are UTF-8, so a string that cannot be encoded is not a mangled
// name.
bool ReadText(PyObject* object, std::string_view* text) {
  if (PyUnicode_Check(object) == 0) {
    PyErr_Format(PyExc_TypeError, "a name must be a str (got %R)",
                 reinterpret_cast<PyObject*>(Py_TYPE(object)));
    return false;
  }
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(object, &size);
  if (bytes == nullptr) return false;
  *text = {bytes, static_cast<size_t>(size)};
  return true;
}

Ref MakeText(const std::string& text) {
  return Ref(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
}

Ref MakeTexts(const std::vector<std::string>& texts) {
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(texts.size())));
  for (size_t i = 0; tuple && i < texts.size(); ++i) {
    Ref text = MakeText(texts[i]);
    if (!text) return Ref();
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), text.release());
  }
  return tuple;
}

// The result, or the fallback if the text is not UTF-8. A damaged name may end in the middle of a
// character.
PyObject* ResultOr(Ref result, PyObject* none) {
  if (!result && PyErr_ExceptionMatches(PyExc_UnicodeError)) {
    PyErr_Clear();
    return Ref::Borrow(none).release();
  }
  return result.release();
}

// The result of `read` for the spelling of a name, or `none` without a spelling.
template <class Read>
PyObject* FromSpelling(PyObject* name, bool with_params, PyObject* none, Read&& read) {
  std::string_view mangled;
  if (!ReadText(name, &mangled)) return ResultOr(Ref(), none);
  try {
    const std::optional<itanium::Spelling> found = itanium::Spell(mangled, with_params);
    if (found) return ResultOr(read(*found), none);
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
  return Ref::Borrow(none).release();
}

}  // namespace

const char kDemangleDoc[] =
    "demangle(name, /)\n--\n\n"
    "Return the C++ spelling of a mangled name, as c++filt prints it.\n\n"
    "It is the name itself when that is not mangled, or when it uses parts of C++ that kernels'\n"
    "names do not: then no spelling is better than a wrong one.";

PyObject* DemangleName(PyObject*, PyObject* name) {
  return FromSpelling(name, false, name,
                      [](const itanium::Spelling& found) { return MakeText(found.text); });
}

const char kMangledParamTypesDoc[] =
    "mangled_param_types(name, /)\n--\n\n"
    "Return the parameter types that a mangled function name spells.\n\n"
    "They have the C spelling that signatures use, \"const float*\"; None when it is not the\n"
    "mangled name of a function.";

PyObject* MangledParamTypes(PyObject*, PyObject* name) {
  return FromSpelling(name, true, Py_None, [](const itanium::Spelling& found) {
    return found.params ? MakeTexts(*found.params) : Ref::Borrow(Py_None);
  });
}

CULAUNCH_NAMESPACE_BEGIN

std::string Demangle(const std::string& name) {
  const std::optional<itanium::Spelling> found = itanium::Spell(name);
  return found ? found->text : name;
}

CULAUNCH_NAMESPACE_END
