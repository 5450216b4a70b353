#include "driver/driver_object.h"

#include <culaunch/graph_slots.h>
#include <culaunch/guard.h>

#include <cstring>
#include <string>
#include <vector>

#include "driver/errors.h"
#include "driver/on_device.h"
#include "driver/prototypes.h"
#include "driver/python_gate.h"
#include "driver/shared_driver.h"
#include "python/type_builder.h"
#include "python/upcalls.h"

PyTypeObject* g_driver_type = nullptr;

culaunch::Driver* DriverOf(PyObject* object) {
  if (!PyObject_TypeCheck(object, g_driver_type)) {
    PyErr_SetString(PyExc_TypeError, "driver must be a culaunch._core.Driver");
    return nullptr;
  }
  return reinterpret_cast<DriverObject*>(object)->driver;
}

namespace {

culaunch::Driver& Self(PyObject* self) { return *reinterpret_cast<DriverObject*>(self)->driver; }

PyObject* Wrap(std::unique_ptr<culaunch::Driver> driver) {
  auto* self = PyObject_New(DriverObject, g_driver_type);
  if (self != nullptr) self->driver = driver.release();
  return reinterpret_cast<PyObject*>(self);
}

PyObject* Open(PyObject*, PyObject* args) {
  const char* choice = nullptr;
  if (!PyArg_ParseTuple(args, "s:open", &choice)) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&] { return Wrap(culaunch::Driver::Open(choice)); });
}

// DLPack's device types, a tuple. False with a Python error set.
bool ReadTypes(PyObject* types, std::vector<int>* device_types) {
  if (!PyTuple_Check(types)) {
    PyErr_SetString(PyExc_TypeError, "device_types must be a tuple of ints");
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(types); ++i) {
    device_types->push_back(static_cast<int>(PyLong_AsLong(PyTuple_GetItem(types, i))));
  }
  return PyErr_Occurred() == nullptr;
}

// from_functions(name, {function: address}, device_types, in_python=False): a table filled by
// Python. The dict may hold "note_array" too (culaunch::Driver). in_python: its functions run
// Python code for as long as the process lives.
PyObject* FromFunctions(PyObject*, PyObject* args) {
  const char* name = nullptr;
  PyObject* functions = nullptr;
  PyObject* types = nullptr;
  int in_python = 0;
  if (!PyArg_ParseTuple(args, "sO!O!|p:from_functions", &name, &PyDict_Type, &functions,
                        &PyTuple_Type, &types, &in_python)) {
    return nullptr;
  }
  culaunch::DriverTable table;
  std::string missing;
  culaunch::ForEachFunction(table, [&](const char* function, int, bool required, void** pointer) {
    PyObject* address = PyDict_GetItemString(functions, function);
    if (address != nullptr) *pointer = PyLong_AsVoidPtr(address);
    if (*pointer == nullptr && required) missing.append(" ").append(function);
  });
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (!missing.empty()) {
    PyErr_Format(PyExc_ValueError, "the driver table lacks%s", missing.c_str());
    return nullptr;
  }
  std::vector<int> device_types;
  if (!ReadTypes(types, &device_types)) return nullptr;
  PyObject* note = PyDict_GetItemString(functions, "note_array");
  void* note_address = note != nullptr ? PyLong_AsVoidPtr(note) : nullptr;
  if (PyErr_Occurred() != nullptr) return nullptr;
  auto note_array = reinterpret_cast<culaunch::NoteArrayFunction>(note_address);
  if (in_python != 0) GateFunctions(&table, &note_array);
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    auto driver = std::make_unique<culaunch::Driver>(table, name, device_types);
    driver->note_array = note_array;
    return Wrap(std::move(driver));
  });
}

// with_memory(device_types): the same driver, with other memory that kernels accept.
PyObject* WithMemory(PyObject* self, PyObject* types) {
  std::vector<int> device_types;
  if (!ReadTypes(types, &device_types)) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    const culaunch::Driver& own = Self(self);
    auto driver = std::make_unique<culaunch::Driver>(own, own.name(), device_types);
    driver->note_array = own.note_array;
    return Wrap(std::move(driver));
  });
}

// publish(): offer this driver to every library in the process that is built on the header.
PyObject* Publish(PyObject* self, PyObject*) {
  return PyUnicode_FromString(PublishDriver(Self(self)).c_str());
}

PyObject* Attribute(PyObject* self, PyObject* args) {
  int attribute = 0;
  int ordinal = 0;
  if (!PyArg_ParseTuple(args, "ii:attribute", &attribute, &ordinal)) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    return PyLong_FromLong(
        Self(self).Attribute(static_cast<CUdevice_attribute>(attribute), ordinal));
  });
}

PyObject* DeviceName(PyObject* self, PyObject* args) {
  int ordinal = 0;
  if (!PyArg_ParseTuple(args, "i:device_name", &ordinal)) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    char name[256] = "";
    culaunch::Driver& driver = Self(self);
    driver.Check(driver.cuDeviceGetName(name, sizeof name, driver.Device(ordinal)),
                 "cuDeviceGetName");
    return PyUnicode_FromString(name);
  });
}

PyObject* CurrentDevice(PyObject* self, PyObject*) {
  return PyLong_FromLong(culaunch::CurrentDevice(Self(self)));
}

PyObject* StreamDevice(PyObject* self, PyObject* args) {
  unsigned long long handle = 0;
  if (!PyArg_ParseTuple(args, "K:stream_device", &handle)) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    int ordinal = 0;
    auto* stream = reinterpret_cast<CUstream>(static_cast<uintptr_t>(handle));
    Self(self).Check(culaunch::StreamDevice(Self(self), stream, &ordinal),
                     "finding the stream's device");
    return PyLong_FromLong(ordinal);
  });
}

PyObject* Synchronize(PyObject* self, PyObject* args) {
  int ordinal = 0;
  if (!PyArg_ParseTuple(args, "i:synchronize", &ordinal)) return nullptr;
  return OnDevice(Self(self), ordinal, "synchronizing the device",
                  [](culaunch::Driver& driver) { return driver.cuCtxSynchronize(); });
}

PyObject* StreamSynchronize(PyObject* self, PyObject* args) {
  int ordinal = 0;
  unsigned long long handle = 0;
  if (!PyArg_ParseTuple(args, "iK:stream_synchronize", &ordinal, &handle)) return nullptr;
  return OnDevice(Self(self), ordinal, "synchronizing the stream", [&](culaunch::Driver& driver) {
    return driver.cuStreamSynchronize(reinterpret_cast<CUstream>(static_cast<uintptr_t>(handle)));
  });
}

PyObject* PushDevice(PyObject* self, PyObject* args) {
  int ordinal = 0;
  if (!PyArg_ParseTuple(args, "i:push_device", &ordinal)) return nullptr;
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    culaunch::Driver& driver = Self(self);
    CUcontext context = nullptr;
    driver.Device(ordinal);
    driver.Check(driver.PrimaryContext(ordinal, &context), "retaining the primary context");
    driver.Check(driver.cuCtxPushCurrent(context), "making the device current");
    Py_RETURN_NONE;
  });
}

PyObject* PopDevice(PyObject* self, PyObject*) {
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    CUcontext context = nullptr;
    Self(self).Check(Self(self).cuCtxPopCurrent(&context), "restoring the current device");
    Py_RETURN_NONE;
  });
}

// The item of a tuple as an unsigned number of 32 bits; sets OverflowError if it does not fit.
cuuint32_t Number32(PyObject* tuple, Py_ssize_t index) {
  const unsigned long value = PyLong_AsUnsignedLong(PyTuple_GetItem(tuple, index));
  if (value > UINT32_MAX && PyErr_Occurred() == nullptr) {
    PyErr_Format(PyExc_OverflowError, "%lu does not fit 32 bits", value);
  }
  return static_cast<cuuint32_t>(value);
}

PyObject* EncodeTiled(PyObject* self, PyObject* args) {
  Py_buffer out;
  int type, interleave, swizzle, promotion, fill;
  unsigned long long address;
  PyObject *dims, *strides, *box, *steps;
  if (!PyArg_ParseTuple(args, "w*iKO!O!O!O!iiii:encode_tiled", &out, &type, &address, &PyTuple_Type,
                        &dims, &PyTuple_Type, &strides, &PyTuple_Type, &box, &PyTuple_Type, &steps,
                        &interleave, &swizzle, &promotion, &fill)) {
    return nullptr;
  }
  constexpr Py_ssize_t kMaxRank = 5;
  const Py_ssize_t rank = PyTuple_Size(dims);
  CUresult code = CUDA_ERROR_INVALID_VALUE;
  culaunch::Driver& driver = Self(self);
  if (driver.cuTensorMapEncodeTiled == nullptr) {
    code = CUDA_ERROR_NOT_SUPPORTED;
  } else if (rank >= 1 && rank <= kMaxRank && PyTuple_Size(strides) == rank - 1 &&
             PyTuple_Size(box) == rank && PyTuple_Size(steps) == rank &&
             out.len == static_cast<Py_ssize_t>(sizeof(CUtensorMap))) {
    cuuint64_t global[kMaxRank] = {};
    cuuint64_t stride[kMaxRank] = {};
    cuuint32_t boxes[kMaxRank] = {};
    cuuint32_t step[kMaxRank] = {};
    for (Py_ssize_t i = 0; i < rank; ++i) {
      global[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(dims, i));
      boxes[i] = Number32(box, i);
      step[i] = Number32(steps, i);
      if (i + 1 < rank) stride[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(strides, i));
    }
    if (PyErr_Occurred() == nullptr) {
      CUtensorMap map;  // cuda.h declares its alignment
      code = driver.cuTensorMapEncodeTiled(
          &map, static_cast<CUtensorMapDataType>(type), static_cast<cuuint32_t>(rank),
          reinterpret_cast<void*>(static_cast<uintptr_t>(address)), global, stride, boxes, step,
          static_cast<CUtensorMapInterleave>(interleave), static_cast<CUtensorMapSwizzle>(swizzle),
          static_cast<CUtensorMapL2promotion>(promotion),
          static_cast<CUtensorMapFloatOOBfill>(fill));
      if (code == CUDA_SUCCESS) std::memcpy(out.buf, &map, sizeof map);
    }
  }
  PyBuffer_Release(&out);
  return PyErr_Occurred() != nullptr ? nullptr : PyLong_FromLong(code);
}

PyObject* Describe(PyObject* self, PyObject* args) {
  int code = 0;
  if (!PyArg_ParseTuple(args, "i:describe", &code)) return nullptr;
  return PyUnicode_FromString(Self(self).Describe(static_cast<CUresult>(code)).c_str());
}

// reach(ordinal, peer) -> whether kernels on a device can access a peer's memory. Access is
// enabled.
PyObject* Reach(PyObject* self, PyObject* args) {
  int ordinal = 0, peer = 0;
  if (!PyArg_ParseTuple(args, "ii:reach", &ordinal, &peer)) return nullptr;
  int can_reach = 0;
  const Ref done(OnDevice(
      Self(self), ordinal, "turning on the access to a peer's memory",
      [&](culaunch::Driver& driver) {
        const CUdevice other = driver.Device(peer);
        if (driver.cuDeviceCanAccessPeer == nullptr || driver.cuCtxEnablePeerAccess == nullptr) {
          return CUDA_ERROR_NOT_SUPPORTED;
        }
        CUresult code = driver.cuDeviceCanAccessPeer(&can_reach, driver.Handle(ordinal), other);
        CUcontext context = nullptr;
        if (code != CUDA_SUCCESS || can_reach == 0) return code;
        code = driver.PrimaryContext(peer, &context);
        if (code == CUDA_SUCCESS) code = driver.cuCtxEnablePeerAccess(context, 0);
        return code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? CUDA_SUCCESS : code;
      }));
  return done ? PyBool_FromLong(can_reach) : nullptr;
}

PyObject* GetName(PyObject* self, void*) { return PyUnicode_FromString(Self(self).name().c_str()); }

PyObject* GetVersion(PyObject* self, void*) { return PyLong_FromLong(Self(self).version()); }

PyObject* GetDeviceCount(PyObject* self, void*) {
  return PyLong_FromLong(Self(self).device_count());
}

PyObject* GetDeviceTypes(PyObject* self, void*) {
  const std::vector<int>& types = Self(self).device_types();
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(types.size())));
  for (size_t i = 0; tuple && i < types.size(); ++i) {
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), PyLong_FromLong(types[i]));
  }
  return tuple.release();
}

// choose_graphs(text, limit): whether launches go as graphs, like CULAUNCH_GRAPHS, and the maximum
// number of graphs (-1: unchanged). Existing graphs are dropped.
PyObject* ChooseGraphs(PyObject* self, PyObject* args) {
  const char* text = nullptr;
  Py_ssize_t limit = -1;
  if (!PyArg_ParseTuple(args, "sn:choose_graphs", &text, &limit)) return nullptr;
  culaunch::Driver& driver = Self(self);
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    driver.ChooseGraphs(text).OrThrow();
    if (limit >= 0) driver.graphs.set_limit(static_cast<size_t>(limit));
    WithoutGil([&] { driver.graphs.Drop(nullptr); });
    Py_RETURN_NONE;
  });
}

// graph_status() -> mode, whether graphs are on, the reason, the number of graphs, the maximum
PyObject* GraphStatus(PyObject* self, PyObject*) {
  culaunch::Graphs& graphs = Self(self).graphs;
  static const char* const modes[] = {"0", "1", "auto"};
  return Py_BuildValue("sNsnn", modes[static_cast<int>(graphs.mode())],
                       PyBool_FromLong(graphs.is_on()), graphs.reason(),
                       static_cast<Py_ssize_t>(WithoutGil([&] { return graphs.count(); })),
                       static_cast<Py_ssize_t>(graphs.limit()));
}

}  // namespace

int AddDriverType(PyObject* module) {
  g_driver_type =
      TypeBuilder("culaunch._core.Driver", sizeof(DriverObject), Py_TPFLAGS_DISALLOW_INSTANTIATION)
          .Method("open", Open, METH_VARARGS | METH_STATIC)
          .Method("from_functions", FromFunctions, METH_VARARGS | METH_STATIC)
          .Method("prototypes", Prototypes, METH_NOARGS | METH_STATIC)
          .Method("publish", Publish, METH_NOARGS)
          .Method("with_memory", WithMemory, METH_O)
          .Method("attribute", Attribute)
          .Method("device_name", DeviceName)
          .Method("current_device", CurrentDevice, METH_NOARGS)
          .Method("stream_device", StreamDevice)
          .Method("stream_synchronize", StreamSynchronize)
          .Method("synchronize", Synchronize)
          .Method("push_device", PushDevice)
          .Method("pop_device", PopDevice, METH_NOARGS)
          .Method("encode_tiled", EncodeTiled)
          .Method("describe", Describe)
          .Method("reach", Reach)
          .Method("choose_graphs", ChooseGraphs)
          .Method("graph_status", GraphStatus, METH_NOARGS)
          .Property("name", GetName)
          .Property("version", GetVersion)
          .Property("device_count", GetDeviceCount)
          .Property("device_types", GetDeviceTypes)
          .AddTo(module);
  return g_driver_type != nullptr ? 0 : -1;
}
