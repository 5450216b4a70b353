#include "python/function_parts.h"

#ifndef _WIN32
#include <dlfcn.h>
#endif

namespace {

using Getter = PyObject* (*)(PyObject*);

// CPython's own functions, or null.
struct Getters {
  Getters() {
#ifndef Py_LIMITED_API
    function_type = &PyFunction_Type;
    cell_type = &PyCell_Type;
    code = PyFunction_GetCode;
    globals = PyFunction_GetGlobals;
    closure = PyFunction_GetClosure;
    defaults = PyFunction_GetDefaults;
    keyword_defaults = PyFunction_GetKwDefaults;
    contents = PyCell_Get;
#elif !defined(_WIN32)
    function_type = static_cast<PyTypeObject*>(dlsym(RTLD_DEFAULT, "PyFunction_Type"));
    cell_type = static_cast<PyTypeObject*>(dlsym(RTLD_DEFAULT, "PyCell_Type"));
    code = Find("PyFunction_GetCode");
    globals = Find("PyFunction_GetGlobals");
    closure = Find("PyFunction_GetClosure");
    defaults = Find("PyFunction_GetDefaults");
    keyword_defaults = Find("PyFunction_GetKwDefaults");
    contents = Find("PyCell_Get");
#endif
    if (code == nullptr || globals == nullptr || closure == nullptr) function_type = nullptr;
    if (contents == nullptr) cell_type = nullptr;
  }

#if defined(Py_LIMITED_API) && !defined(_WIN32)
  static Getter Find(const char* name) {
    return reinterpret_cast<Getter>(dlsym(RTLD_DEFAULT, name));
  }
#endif

  PyTypeObject* function_type = nullptr;  // null: some functions are missing
  PyTypeObject* cell_type = nullptr;
  Getter code = nullptr;  // all but the last give borrowed references
  Getter globals = nullptr;
  Getter closure = nullptr;
  Getter defaults = nullptr;
  Getter keyword_defaults = nullptr;
  Getter contents = nullptr;
};

bool are_used = true;

const Getters& Known() {
  static const Getters known;
  static const Getters none = [] {
    Getters made;
    made.function_type = made.cell_type = nullptr;
    return made;
  }();
  return are_used ? known : none;
}

// Attributes, by names that are interned once.
Ref Attribute(PyObject* object, PyObject** name, const char* text) {
  if (*name == nullptr) *name = PyUnicode_InternFromString(text);
  return Ref(*name != nullptr ? PyObject_GetAttr(object, *name) : nullptr);
}

}  // namespace

Ref CodeOf(PyObject* function) {
  const Getters& known = Known();
  if (Py_TYPE(function) == known.function_type) return Ref::Borrow(known.code(function));
  static PyObject* name = nullptr;
  return Attribute(function, &name, "__code__");
}

Ref GlobalsOf(PyObject* function) {
  const Getters& known = Known();
  if (Py_TYPE(function) == known.function_type) return Ref::Borrow(known.globals(function));
  static PyObject* name = nullptr;
  return Attribute(function, &name, "__globals__");
}

Ref ClosureOf(PyObject* function) {
  const Getters& known = Known();
  if (Py_TYPE(function) == known.function_type) {
    PyObject* const closure = known.closure(function);
    return Ref::Borrow(closure != nullptr ? closure : Py_None);
  }
  static PyObject* name = nullptr;
  return Attribute(function, &name, "__closure__");
}

PyObject* PartOf(PyObject* function, FunctionPart part) {
  const Getters& known = Known();
  const Getter getter = part == FunctionPart::kCode       ? known.code
                        : part == FunctionPart::kDefaults ? known.defaults
                                                          : known.keyword_defaults;
  if (getter != nullptr && Py_TYPE(function) == known.function_type) {
    PyObject* const found = getter(function);
    return found != nullptr ? found : Py_None;
  }
  static PyObject* names[] = {nullptr, nullptr, nullptr};
  static constexpr const char* texts[] = {"__code__", "__defaults__", "__kwdefaults__"};
  const auto index = static_cast<size_t>(part);
  // The function owns it until it is replaced.
  return Attribute(function, &names[index], texts[index]).get();
}

Ref ContentsOf(PyObject* cell) {
  const Getters& known = Known();
  if (Py_TYPE(cell) == known.cell_type) {
    Ref found(known.contents(cell));
    if (!found && PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_ValueError, "the cell is empty");
    }
    return found;
  }
  static PyObject* name = nullptr;
  return Attribute(cell, &name, "cell_contents");
}

void UseFunctionParts(bool use) { are_used = use; }
