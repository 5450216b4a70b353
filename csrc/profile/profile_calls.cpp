#include "profile/profile_calls.h"

#include <cmath>
#include <set>

#include "compile/library_errors.h"
#include "driver/driver_object.h"
#include "driver/errors.h"
#include "launch/kernel_object.h"
#include "launch/launcher.h"
#include "profile/device_kernels.h"
#include "profile/profiler.h"
#include "python/call_keeper.h"

namespace profile {

namespace {

culaunch::Mutex g_mutex;
int g_watching = 0;  // the number of running profiles; g_mutex guards it

// The bytes of an array; -1: its size is not known.
int64_t BytesOf(PyObject* array) {
  Ref size(PyObject_GetAttrString(array, "nbytes"));
  const int64_t bytes =
      size && PyLong_CheckExact(size.get()) ? PyLong_AsLongLong(size.get()) : int64_t{-1};
  PyErr_Clear();
  return bytes;
}

// Whether an argument of a launcher is an array. A number is an array of unknown size if the
// parameter is a pointer.
bool IsArray(const KernelObject& kernel, size_t i, PyObject* argument) {
  const bool is_number = PyLong_Check(argument) || PyFloat_Check(argument);
  const TypeClass type = kernel.slots[i].type_class;
  return type == TypeClass::kPointer ||
         (type == TypeClass::kUnknown && !is_number && argument != Py_None);
}

// Add up the sizes of the arrays that a launcher was given, counting each array once. Without a
// launcher, it was a Triton kernel, whose arrays are tensors.
void NoteArguments(PyObject* launcher, PyObject* const* args, size_t count) {
  const KernelObject* kernel = launcher != nullptr ? KernelOfLauncher(launcher) : nullptr;
  std::set<PyObject*> seen;
  int64_t all = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool is_array = kernel != nullptr ? IsArray(*kernel, i, args[i])
                                            : PyObject_HasAttrString(args[i], "data_ptr") != 0;
    if (!is_array || !seen.insert(args[i]).second) continue;
    const int64_t bytes = BytesOf(args[i]);
    if (bytes < 0) return;
    all += bytes;
  }
  // Release the GIL: another thread may hold the profiler's lock and wait for the GIL, because the
  // emulator is written in Python.
  const culaunch::KernelState* state = kernel != nullptr ? kernel->state : nullptr;
  if (!seen.empty()) WithoutGil([&] { Profiler::NoteLastBytes(state, all); });
}

PyObject* Tuple(const LaunchedKernel& kernel) {
  return Py_BuildValue("siiIiiiii", kernel.state->name().c_str(), kernel.ordinal, kernel.threads,
                       kernel.dynamic_shared, kernel.registers, kernel.static_shared,
                       kernel.local_bytes, kernel.max_threads, kernel.active_blocks);
}

PyObject* Number(double value) {
  return std::isnan(value) ? Ref::Borrow(Py_None).release() : PyFloat_FromDouble(value);
}

PyObject* Tuple(const LaunchRecord& record) {
  Ref names(PyTuple_New(static_cast<Py_ssize_t>(record.graph_kernels.size())));
  if (!names) return nullptr;
  for (size_t i = 0; i < record.graph_kernels.size(); ++i) {
    PyObject* name = PyUnicode_FromString(record.graph_kernels[i].c_str());
    if (name == nullptr) return nullptr;
    PyTuple_SetItem(names.get(), static_cast<Py_ssize_t>(i), name);
  }
  return Py_BuildValue(
      "iO(III)(III)IiKkLLLiiiNN", record.kernel, names.get(), record.grid[0], record.grid[1],
      record.grid[2], record.block[0], record.block[1], record.block[2], record.shared,
      record.ordinal, static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(record.stream)),
      record.thread, static_cast<long long>(record.begin), static_cast<long long>(record.duration),
      static_cast<long long>(record.argument_bytes), static_cast<int>(record.time),
      static_cast<int>(record.code), record.context, Number(record.device_begin),
      Number(record.device_time));
}

PyObject* Tuple(const DeviceKernel& kernel) {
  const Ref name(PyUnicode_DecodeUTF8(
      kernel.name.data(), static_cast<Py_ssize_t>(kernel.name.size()), "surrogateescape"));
  if (!name) return nullptr;
  return Py_BuildValue(
      "O(iii)(iii)IIiiiIKK", name.get(), kernel.grid[0], kernel.grid[1], kernel.grid[2],
      kernel.block[0], kernel.block[1], kernel.block[2], kernel.device, kernel.stream,
      kernel.registers, kernel.static_shared, kernel.dynamic_shared, kernel.local_bytes,
      static_cast<unsigned long long>(kernel.begin), static_cast<unsigned long long>(kernel.end));
}

template <class Item>
Ref List(const std::vector<Item>& items) {
  Ref list(PyList_New(0));
  for (const Item& item : items) {
    if (!list) break;
    const Ref tuple(Tuple(item));
    if (!tuple || PyList_Append(list.get(), tuple.get()) != 0) return Ref();
  }
  return list;
}

void Watch(int change) {
  const culaunch::LockGuard lock(g_mutex);
  g_watching += change;
  CallKeeper::Watch(g_watching != 0 ? NoteArguments : nullptr);
}

}  // namespace

PyObject* StartProfile(PyObject*, PyObject* args) {
  PyObject* object = nullptr;
  Py_ssize_t limit = 0;
  if (!PyArg_ParseTuple(args, "On:start_profile", &object, &limit)) return nullptr;
  culaunch::Driver* driver = DriverOf(object);
  if (driver == nullptr) return nullptr;
  const Profiler::Mark mark =
      WithoutGil([&] { return Profiler::Of(*driver).Start(static_cast<size_t>(limit)); });
  Watch(1);
  return Py_BuildValue("nn", static_cast<Py_ssize_t>(mark.begin),
                       static_cast<Py_ssize_t>(mark.omitted));
}

PyObject* StopProfile(PyObject*, PyObject* args) {
  PyObject* object = nullptr;
  Py_ssize_t begin = 0;
  Py_ssize_t omitted = 0;
  if (!PyArg_ParseTuple(args, "O(nn):stop_profile", &object, &begin, &omitted)) return nullptr;
  culaunch::Driver* driver = DriverOf(object);
  if (driver == nullptr) return nullptr;
  Watch(-1);
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    const Profiler::Log log = WithoutGil([&] {
      return Profiler::Of(*driver).Stop({static_cast<size_t>(begin), static_cast<size_t>(omitted)});
    });
    const Ref kernels = List(log.kernels);
    for (const LaunchedKernel& kernel : log.kernels) kernel.state->Leave();
    const Ref launches = List(log.launches);
    if (!kernels || !launches) return nullptr;
    return Py_BuildValue("OOn", kernels.get(), launches.get(),
                         static_cast<Py_ssize_t>(log.omitted));
  });
}

PyObject* StartDeviceKernels(PyObject*, PyObject*) {
  return GuardedLibrary([&] {
    const DeviceKernels::Mark mark = WithoutGil([] { return DeviceKernels::Get().Start(); });
    return Ref(Py_BuildValue("nnK", static_cast<Py_ssize_t>(mark.begin),
                             static_cast<Py_ssize_t>(mark.dropped),
                             static_cast<unsigned long long>(mark.time)));
  });
}

PyObject* StopDeviceKernels(PyObject*, PyObject* mark) {
  Py_ssize_t begin = 0;
  Py_ssize_t dropped = 0;
  unsigned long long time = 0;
  if (!PyArg_ParseTuple(mark, "nnK:stop_device_kernels", &begin, &dropped, &time)) return nullptr;
  return GuardedLibrary([&] {
    const DeviceKernels::Log log = WithoutGil([&] {
      return DeviceKernels::Get().Stop(
          {static_cast<size_t>(begin), static_cast<size_t>(dropped), time});
    });
    const Ref kernels = Required(List(log.kernels));
    return Ref(Py_BuildValue("On", kernels.get(), static_cast<Py_ssize_t>(log.dropped)));
  });
}

}  // namespace profile
