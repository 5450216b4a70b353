#include "compile/signatures.h"

#include <culaunch/jit/signatures.h>

#include "compile/guarded.h"
#include "compile/texts.h"

namespace {

using Texts = std::map<std::string, std::string>;

// Ask a Python function for the lowered names by kernel.
Texts Ask(PyObject* probe, const std::string& text, const Texts& expressions) {
  const Ref asked = Required(Ref(PyDict_New()));
  for (const auto& [kernel, expression] : expressions) {
    const Ref value = Required(MakeText(expression));
    Require(PyDict_SetItem(asked.get(), Required(MakeText(kernel)).get(), value.get()) == 0);
  }
  const Ref found = Required(Ref(
      PyObject_CallFunctionObjArgs(probe, Required(MakeText(text)).get(), asked.get(), nullptr)));
  Texts lowered;
  for (const auto& one : expressions) {
    PyObject* const name =
        PyDict_GetItemWithError(found.get(), Required(MakeText(one.first)).get());
    Require(name != nullptr || PyErr_Occurred() == nullptr);
    if (name != nullptr) Require(ReadBytes(name, &lowered[one.first]));
  }
  return lowered;
}

}  // namespace

Ref MakeSignatures(
    const std::vector<std::pair<std::string, std::vector<std::string>>>& signatures) {
  Ref found = Required(Ref(PyDict_New()));
  for (const auto& [kernel, types] : signatures) {
    const Ref spelled = Required(MakeTuple(types, [](const std::string& type) {
      return type.empty() ? Ref::Borrow(Py_None) : MakeText(type);
    }));
    Require(PyDict_SetItem(found.get(), Required(MakeText(kernel)).get(), spelled.get()) == 0);
  }
  return found;
}

PyObject* KernelSignatures(PyObject*, PyObject* args) {
  PyObject *ptx, *source, *probe;
  if (!PyArg_ParseTuple(args, "SOO:kernel_signatures", &ptx, &source, &probe)) return nullptr;
  return Guarded([&] {
    const std::string code(PyBytes_AsString(ptx), static_cast<size_t>(PyBytes_Size(ptx)));
    std::string text;
    Require(ReadBytes(source, &text));
    culaunch::jit::Probe ask;
    if (probe != Py_None) {
      ask = [&](const std::string& added, const Texts& expressions) {
        return Ask(probe, added, expressions);
      };
    }
    return MakeSignatures(culaunch::jit::KernelSignatures(code, text, ask));
  });
}
