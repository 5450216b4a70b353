#include "launch/module_object.h"

#include <optional>

#include "driver/driver_object.h"
#include "driver/errors.h"
#include "python/type_builder.h"

PyTypeObject* g_module_type = nullptr;

namespace {

ModuleObject* ModuleOf(PyObject* self) { return reinterpret_cast<ModuleObject*>(self); }

// Module(driver, bytes)
PyObject* NewModule(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* driver = nullptr;
  Py_buffer image;
  if (!PyArg_ParseTuple(args, "Oy*:Module", &driver, &image)) return nullptr;
  culaunch::Driver* table = DriverOf(driver);
  auto* module =
      table == nullptr ? nullptr : Guarded<culaunch::Module*>("ImageError", nullptr, [&] {
        const ReleaseGil released;  // PTX is compiled here
        return new culaunch::Module(image.buf, static_cast<size_t>(image.len), *table);
      });
  PyBuffer_Release(&image);
  if (module == nullptr) return nullptr;
  module->Release();
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  Py_INCREF(driver);
  ModuleOf(self)->driver = driver;
  ModuleOf(self)->module = module;
  return self;
}

void DeallocModule(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(ModuleOf(self)->driver);
  delete ModuleOf(self)->module;  // released: the driver keeps the library
  // A subclass defined in Python is garbage-collected, and freed by another function.
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* KernelNames(PyObject* self, PyObject*) {
  return Guarded<PyObject*>("ImageError", nullptr, [&]() -> PyObject* {
    const auto names = WithoutGil([&] { return ModuleOf(self)->module->KernelNames(); });
    Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
    for (size_t i = 0; tuple && i < names.size(); ++i) {
      PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i),
                      PyUnicode_FromString(names[i].c_str()));
    }
    return PyErr_Occurred() != nullptr ? nullptr : tuple.release();
  });
}

// layout(kernel) -> ((offset, size), ...), or None if the module has no such kernel.
PyObject* Layout(PyObject* self, PyObject* args) {
  const char* name = nullptr;
  if (!PyArg_ParseTuple(args, "s:layout", &name)) return nullptr;
  return Guarded<PyObject*>("KernelNotFoundError", nullptr, [&]() -> PyObject* {
    culaunch::Module& module = *ModuleOf(self)->module;
    const auto kernel = WithoutGil([&]() -> std::optional<culaunch::Kernel> {
      if (!module.HasKernel(name)) return std::nullopt;
      return module.GetKernel(name);
    });
    if (!kernel.has_value()) Py_RETURN_NONE;
    const auto& parameters = kernel->parameters();
    Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(parameters.size())));
    for (size_t i = 0; tuple && i < parameters.size(); ++i) {
      PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i),
                      Py_BuildValue("nn", static_cast<Py_ssize_t>(parameters[i].offset),
                                    static_cast<Py_ssize_t>(parameters[i].size)));
    }
    return PyErr_Occurred() != nullptr ? nullptr : tuple.release();
  });
}

PyObject* GetGlobal(PyObject* self, PyObject* args) {
  const char* name = nullptr;
  int ordinal = 0;
  if (!PyArg_ParseTuple(args, "si:get_global", &name, &ordinal)) return nullptr;
  return Guarded<PyObject*>("KernelNotFoundError", nullptr, [&] {
    const culaunch::GlobalVariable variable =
        WithoutGil([&] { return ModuleOf(self)->module->GetGlobal(name, ordinal); });
    return Py_BuildValue("Kn", static_cast<unsigned long long>(variable.address),
                         static_cast<Py_ssize_t>(variable.size));
  });
}

PyObject* Unload(PyObject* self, PyObject*) {
  {
    const ReleaseGil released;
    ModuleOf(self)->module->Unload();
  }
  Py_RETURN_NONE;
}

PyObject* GetModuleDriver(PyObject* self, void*) {
  Py_INCREF(ModuleOf(self)->driver);
  return ModuleOf(self)->driver;
}

PyObject* GetLoaded(PyObject* self, void*) {
  return PyBool_FromLong(ModuleOf(self)->module->IsLoaded());
}

PyObject* GetModuleHandle(PyObject* self, void*) {
  return PyLong_FromVoidPtr(ModuleOf(self)->module->handle());
}

}  // namespace

int AddModuleType(PyObject* module) {
  g_module_type = TypeBuilder("culaunch._core.Module", sizeof(ModuleObject))
                      .Slot(Py_tp_new, NewModule)
                      .Slot(Py_tp_dealloc, DeallocModule)
                      .Method("kernel_names", KernelNames, METH_NOARGS)
                      .Method("layout", Layout)
                      .Method("get_global", GetGlobal)
                      .Method("unload", Unload, METH_NOARGS)
                      .Property("driver", GetModuleDriver)
                      .Property("is_loaded", GetLoaded)
                      .Property("handle", GetModuleHandle)
                      .AddTo(module);
  return g_module_type != nullptr ? 0 : -1;
}
