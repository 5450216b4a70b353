// Errors of culaunch's headers about compilers, as Python's exceptions.
#pragma once

#include <culaunch/error.h>
#include <culaunch/jit/compile_error.h>

#include "compile/guarded.h"
#include "compile/texts.h"
#include "python/upcalls.h"

// A compiler's library that is not installed becomes a MissingDependencyError with the reason,
// which the caller completes. CompileError keeps the log.
inline PyObject* RaiseLibraryError(const culaunch::Error& error) {
  const auto* refused = dynamic_cast<const culaunch::CompileError*>(&error);
  const char* const name = refused != nullptr ? "CompileError"
                           : error.code() == CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
                               ? "MissingDependencyError"
                           : error.kind() == culaunch::ErrorKind::kDriver ? "InternalError"
                                                                          : nullptr;
  const Ref text(MakeText(error.what()));
  if (!text) return nullptr;
  if (name == nullptr) {
    PyErr_SetObject(PyExc_ValueError, text.get());
    return nullptr;
  }
  const Ref module = Import(modules::kErrors);
  const Ref type(module ? PyObject_GetAttrString(module.get(), name) : nullptr);
  const Ref value(type ? PyObject_CallFunctionObjArgs(type.get(), text.get(), nullptr) : nullptr);
  if (!value) return nullptr;
  if (refused != nullptr) {
    const Ref log(MakeText(refused->log()));
    if (!log || PyObject_SetAttrString(value.get(), "log", log.get()) != 0) return nullptr;
  }
  PyErr_SetObject(type.get(), value.get());
  return nullptr;
}

// Return the result of `make`; null with a Python error set if it throws.
template <class Make>
PyObject* GuardedLibrary(const Make& make) {
  try {
    return Guarded(make);
  } catch (const culaunch::Error& error) {
    return RaiseLibraryError(error);
  }
}

// An object of a header in a capsule.
template <class Thing>
Ref InCapsule(Thing* thing) {
  return Ref(PyCapsule_New(thing, nullptr, [](PyObject* capsule) {
    delete static_cast<Thing*>(PyCapsule_GetPointer(capsule, nullptr));
  }));
}

template <class Thing>
Thing& OfCapsule(PyObject* capsule) {
  auto* const thing = static_cast<Thing*>(PyCapsule_GetPointer(capsule, nullptr));
  Require(thing != nullptr);
  return *thing;
}
