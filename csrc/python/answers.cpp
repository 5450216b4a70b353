#include "python/answers.h"

#include <cstring>
#include <iterator>

#include "python/following.h"
#include "python/upcalls.h"

// These functions are in C++, so no frame is added between the caller and Python's function.
// Warnings count frames, and a class takes its module from one.

namespace {

// These values are never a stand-in, nor a replacement of a Python function or class.
bool IsPlain(PyObject* value) {
  for (const PyTypeObject* plain :
       {&PyBool_Type, &PyLong_Type, &PyUnicode_Type, &PyFloat_Type, &PyTuple_Type, &PyList_Type,
        &PyDict_Type, &PyBaseObject_Type}) {
    if (Py_TYPE(value) == plain) return true;
  }
  return value == Py_None;
}

// -1 with a Python error set.
int IsSame(PyObject* left, PyObject* right) {
  if (left == right) return 1;
  // Other packages' code compares many of these.
  if (IsPlain(left) && IsPlain(right)) return 0;
  const NotFollowed block;
  const Ref answer = CallUp(Upcall::kIsSame, "OO", left, right);
  return answer ? static_cast<int>(answer.get() == Py_True) : -1;
}

PyObject* AsBool(int is_true, bool negated) {
  return is_true < 0 ? nullptr : PyBool_FromLong((is_true != 0) != negated);
}

bool IsOneOf(PyObject* value, PyObject* kinds) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(kinds); ++i) {
    auto* kind = reinterpret_cast<PyTypeObject*>(PyTuple_GetItem(kinds, i));
    if (PyType_IsSubtype(Py_TYPE(value), kind) != 0) return true;
  }
  return false;
}

// Looked up at each call: a program may replace it.
PyObject* Ask(PyObject* self, PyObject* args, PyObject* keywords) {
  PyObject *name, *builtins, *answer, *kinds;
  if (!PyArg_ParseTuple(self, "OOOO", &name, &builtins, &answer, &kinds)) return nullptr;
  if (PyTuple_Size(args) > 0 && IsOneOf(PyTuple_GetItem(args, 0), kinds)) {
    return PyObject_Call(answer, args, keywords);
  }
  const Ref plain(PyObject_GetItem(builtins, name));
  return plain ? PyObject_Call(plain.get(), args, keywords) : nullptr;
}

PyObject* AskOrImport(PyObject* self, PyObject* args, PyObject* keywords) {
  PyObject *builtins, *same, *other, *modules;
  if (!PyArg_ParseTuple(self, "OOOO", &builtins, &same, &other, &modules)) return nullptr;
  // A name, globals, locals, and the two values in place of a list of names and a level.
  PyObject* name = PyTuple_Size(args) == 5 ? PyTuple_GetItem(args, 0) : Py_None;
  for (PyObject* marker : {same, other}) {
    if (PyUnicode_Check(name) == 0 || PyUnicode_Compare(name, marker) != 0) continue;
    return AsBool(IsSame(PyTuple_GetItem(args, 4), PyTuple_GetItem(args, 3)), marker == other);
  }
  const Ref plain(PyMapping_GetItemString(builtins, "__import__"));
  if (plain) {
    Ref module(PyObject_Call(plain.get(), args, keywords));
    PyObject* replaced = module ? PyDict_GetItemWithError(modules, module.get()) : nullptr;
    if (replaced == nullptr && PyErr_Occurred() != nullptr) return nullptr;
    return replaced == nullptr ? module.release() : Py_NewRef(replaced);
  }
  if (PyErr_ExceptionMatches(PyExc_KeyError) != 0) {
    PyErr_SetString(PyExc_ImportError, "__import__ not found");
  }
  return nullptr;
}

constexpr int kKeywords = METH_VARARGS | METH_KEYWORDS;

PyCFunction Untyped(PyCFunctionWithKeywords function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef functions[] = {
    {"isinstance", Untyped(Ask), kKeywords, nullptr},
    {"id", Untyped(Ask), kKeywords, nullptr},
    {"type", Untyped(Ask), kKeywords, nullptr},
};
PyMethodDef import_function = {"__import__", Untyped(AskOrImport), kKeywords, nullptr};

PyObject* OfBuiltins(PyMethodDef* definition, PyObject* self) {
  const Ref module(PyUnicode_FromString("builtins"));
  return module ? PyCFunction_NewEx(definition, self, module.get()) : nullptr;
}

// ---- operator.is_ and operator.is_not

using Fast = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);

struct Operator {
  const char* name;
  PyMethodDef* method;
  PyCFunction own;
};
Operator operators[] = {{"is_", nullptr, nullptr}, {"is_not", nullptr, nullptr}};

template <int number>
PyObject* Compare(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (is_followed && count == 2) return AsBool(IsSame(args[0], args[1]), number == 1);
  return reinterpret_cast<Fast>(reinterpret_cast<void*>(operators[number].own))(self, args, count);
}

// The definition that a function of C calls at each call: the first member after those of every
// object. Null if it is not there.
PyMethodDef* DefinitionOf(PyObject* module, const char* name) {
  const Ref function(PyObject_GetAttrString(module, name));
  if (!function || PyCFunction_CheckExact(function.get()) == 0) return nullptr;
  if (PyCFunction_GetFlags(function.get()) != METH_FASTCALL) return nullptr;
  const Ref size(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__basicsize__"));
  if (!size) return nullptr;
  auto* begin = reinterpret_cast<char*>(function.get());
  auto* method = *reinterpret_cast<PyMethodDef**>(begin + PyLong_AsSsize_t(size.get()));
  const bool is_it = method->ml_meth == PyCFunction_GetFunction(function.get()) &&
                     std::strcmp(method->ml_name, name) == 0;
  return is_it ? method : nullptr;
}

bool FindOperators() {
  static const bool are_found = [] {
    const Ref module = Import(modules::kOperator);
    for (Operator& one : operators) {
      one.method = module ? DefinitionOf(module.get(), one.name) : nullptr;
      if (one.method == nullptr) return false;
      one.own = one.method->ml_meth;
    }
    return true;
  }();
  PyErr_Clear();
  return are_found;
}

}  // namespace

void AnswerOperators(bool on) {
  if (!FindOperators()) return;
  const Fast answers[] = {Compare<0>, Compare<1>};
  for (size_t i = 0; i < std::size(operators); ++i) {
    const auto answer = reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(answers[i]));
    operators[i].method->ml_meth = on ? answer : operators[i].own;
  }
}

PyObject* MakeAsking(PyObject*, PyObject* args) {
  PyObject* name;
  if (PyTuple_Size(args) != 4 || (name = PyTuple_GetItem(args, 0)) == nullptr) {
    PyErr_SetString(PyExc_TypeError, "asking takes four arguments");
    return nullptr;
  }
  for (PyMethodDef& one : functions) {
    if (PyUnicode_CompareWithASCIIString(name, one.ml_name) == 0) return OfBuiltins(&one, args);
  }
  return PyErr_Format(PyExc_ValueError, "no function %U of Python asks", name);
}

PyObject* MakeAskingImport(PyObject*, PyObject* args) { return OfBuiltins(&import_function, args); }
