#include "driver/driver_calls.h"

#include <culaunch/graph_node.h>
#include <culaunch/launch_recorder.h>

#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>

#include "driver/context_handles.h"
#include "driver/driver_object.h"
#include "driver/on_device.h"

namespace {

// An argument of a driver function, read from a Python object. False with a Python error set.
template <class T>
struct Argument {
  static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
  T value = {};

  bool Read(PyObject* object) {
    const Ref number(PyNumber_Index(object));
    if (!number) return false;
    if constexpr (std::is_unsigned_v<T>) {
      return Store(PyLong_AsUnsignedLongLong(number.get()));
    } else {
      return Store(PyLong_AsLongLong(number.get()));
    }
  }

 private:
  template <class Wide>
  bool Store(Wide wide) {
    if (PyErr_Occurred() != nullptr) return false;
    value = static_cast<T>(wide);
    if (static_cast<Wide>(value) == wide) return true;
    PyErr_Format(PyExc_OverflowError, "the number does not fit %zu bits", 8 * sizeof(T));
    return false;
  }
};

// A handle or an address.
template <class T>
struct Argument<T*> {
  T* value = nullptr;

  bool Read(PyObject* object) {
    if (object == Py_None) return true;
    value = static_cast<T*>(PyLong_AsVoidPtr(object));
    return PyErr_Occurred() == nullptr;
  }
};

// A descriptor.
template <class T>
struct Argument<const T*> {
  const T* value = nullptr;
  T copy;

  bool Read(PyObject* object) {
    if (object == Py_None) return true;
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) != 0) return false;
    const bool fits = view.len == static_cast<Py_ssize_t>(sizeof copy);
    if (fits) std::memcpy(&copy, view.buf, sizeof copy);
    PyBuffer_Release(&view);
    value = &copy;
    if (!fits) PyErr_Format(PyExc_ValueError, "the descriptor must have %zu bytes", sizeof copy);
    return fits;
  }
};

PyObject* ToPython(float value) { return PyFloat_FromDouble(value); }
template <class T>
PyObject* ToPython(T* value) {
  return PyLong_FromVoidPtr(value);
}
template <class T>
std::enable_if_t<std::is_integral_v<T>, PyObject*> ToPython(T value) {
  if constexpr (std::is_signed_v<T>) return PyLong_FromLongLong(value);
  return PyLong_FromUnsignedLongLong(value);
}

// None, the one result, or a tuple of them.
template <class... Results>
PyObject* Returned(const std::tuple<Results...>& results) {
  if constexpr (sizeof...(Results) == 0) {
    Py_RETURN_NONE;
  } else if constexpr (sizeof...(Results) == 1) {
    return ToPython(std::get<0>(results));
  } else {
    return std::apply(
        [](auto... one) -> PyObject* {
          Ref tuple(PyTuple_New(sizeof...(one)));
          Py_ssize_t index = 0;
          for (PyObject* item : {ToPython(one)...}) {
            if (tuple) PyTuple_SetItem(tuple.get(), index++, item);
          }
          return PyErr_Occurred() != nullptr ? nullptr : tuple.release();
        },
        results);
  }
}

enum class Kind {
  kPlain,
  kQuery,    // "not ready" is an answer: a bool is returned
  kRelease,  // no caller waits for the result, such as at the end of the process
};

// A handle that a function creates or releases. It may belong to the user's own context.
template <auto member>
constexpr int kMakes = -1;
template <auto member>
constexpr int kReleases = -1;

#define CULAUNCH_HANDLE_KIND(kind, make, release)                                          \
  template <>                                                                              \
  constexpr int kMakes<&culaunch::DriverTable::make> = static_cast<int>(HandleKind::kind); \
  template <>                                                                              \
  constexpr int kReleases<&culaunch::DriverTable::release> = static_cast<int>(HandleKind::kind);
CULAUNCH_HANDLE_KIND(kStream, cuStreamCreateWithPriority, cuStreamDestroy)
CULAUNCH_HANDLE_KIND(kEvent, cuEventCreate, cuEventDestroy)
CULAUNCH_HANDLE_KIND(kHostMemory, cuMemHostAlloc, cuMemFreeHost)
CULAUNCH_HANDLE_KIND(kMemory, cuMemAllocManaged, cuMemFree)
CULAUNCH_HANDLE_KIND(kArray, cuArray3DCreate, cuArrayDestroy)
CULAUNCH_HANDLE_KIND(kTexture, cuTexObjectCreate, cuTexObjectDestroy)
CULAUNCH_HANDLE_KIND(kSurface, cuSurfObjectCreate, cuSurfObjectDestroy)
#undef CULAUNCH_HANDLE_KIND

template <class T>
uint64_t HandleNumber(T handle) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<uintptr_t>(handle);
  } else {
    return static_cast<uint64_t>(handle);
  }
}

// The driver functions, and their names in errors.
struct Doing {
  const char* function;
  Kind kind;
  const char* what;
};

bool IsThere(culaunch::Driver& driver, bool is_there, const Doing& doing) {
  if (is_there) return true;
  return Guarded<bool>(nullptr, false, [&]() -> bool {
    throw culaunch::Error(culaunch::ErrorKind::kDriver, CUDA_ERROR_NOT_SUPPORTED,
                          "CUDA_ERROR_NOT_SUPPORTED",
                          std::string(doing.what) + " failed: the driver in use, " + driver.name() +
                              ", has no " + doing.function);
  });
}

// The graph node that a call creates; null if it creates none.
template <auto member>
struct AsNode {
  template <class... Arguments>
  static std::unique_ptr<culaunch::GraphNode> Make(int, Arguments...) {
    return nullptr;
  }
};

template <>
struct AsNode<&culaunch::DriverTable::cuMemcpyAsync> {
  static auto Make(int ordinal, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
    const auto place = [](CUdeviceptr address) {
      return culaunch::GraphNode::Place{reinterpret_cast<void*>(address), false};
    };
    return culaunch::GraphNode::Copy(ordinal, place(to), place(from), bytes);
  }
};

template <class Value>
struct FillAsNode {
  static auto Make(int ordinal, CUdeviceptr to, Value value, size_t count, CUstream) {
    return culaunch::GraphNode::Fill(ordinal, to, value, sizeof value, count);
  }
};
template <>
struct AsNode<&culaunch::DriverTable::cuMemsetD8Async> : FillAsNode<unsigned char> {};
template <>
struct AsNode<&culaunch::DriverTable::cuMemsetD16Async> : FillAsNode<unsigned short> {};
template <>
struct AsNode<&culaunch::DriverTable::cuMemsetD32Async> : FillAsNode<unsigned> {};
template <>
struct AsNode<&culaunch::DriverTable::cuMemsetD2D32Async> {
  static auto Make(int ordinal, CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                   size_t height, CUstream) {
    return culaunch::GraphNode::Fill(ordinal, to, value, sizeof value, width, height, pitch);
  }
};

template <>
struct AsNode<&culaunch::DriverTable::cuEventRecord> {
  static auto Make(int, CUevent event, CUstream) {
    return culaunch::GraphNode::Event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
  }
};
template <>
struct AsNode<&culaunch::DriverTable::cuStreamWaitEvent> {
  static auto Make(int, CUstream, CUevent event, unsigned) {
    return culaunch::GraphNode::Event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
  }
};

// The first `kResults` parameters point to results; the others are arguments.
template <auto member, size_t kResults, class Function>
struct Call;

template <auto member, size_t kResults, class... Parameters>
struct Call<member, kResults, CUresult (*)(Parameters...)> {
  using All = std::tuple<Parameters...>;

  template <size_t... R, size_t... A>
  static PyObject* Run(PyObject* self, PyObject* args, const Doing& doing,
                       std::index_sequence<R...>, std::index_sequence<A...>) {
    culaunch::Driver& driver = *reinterpret_cast<DriverObject*>(self)->driver;
    if (!IsThere(driver, driver.*member != nullptr, doing)) return nullptr;
    if (PyTuple_Size(args) != static_cast<Py_ssize_t>(1 + sizeof...(A))) {
      PyErr_Format(PyExc_TypeError, "%s takes a device and %zu arguments", doing.function,
                   sizeof...(A));
      return nullptr;
    }
    Argument<int> ordinal;
    std::tuple<std::remove_pointer_t<std::tuple_element_t<R, All>>...> results;
    std::tuple<Argument<std::tuple_element_t<kResults + A, All>>...> arguments;
    const bool is_read = ordinal.Read(PyTuple_GetItem(args, 0)) &&
                         (... && std::get<A>(arguments).Read(PyTuple_GetItem(args, 1 + A)));
    if (!is_read) return nullptr;
    bool is_ready = true;
    const Ref done(OnDevice(driver, ordinal.value, doing.what, [&](culaunch::Driver& table) {
      const culaunch::RelaxedCaptureGuard relaxed(table);
      if (CULAUNCH_UNLIKELY(table.graphs.IsRecording())) {
        culaunch::LaunchRecorder* recorder = culaunch::LaunchRecorder::Current();
        auto node = recorder != nullptr
                        ? AsNode<member>::Make(ordinal.value, std::get<A>(arguments).value...)
                        : nullptr;
        if (node != nullptr) {
          const CUresult taken = recorder->TakeNode(std::move(node));
          recorder->StatusOf(taken, doing.what).OrThrow();
          return taken;
        }
      }
      if constexpr (kReleases<member> >= 0) {
        const uint64_t handle = HandleNumber(std::get<0>(arguments).value);
        if (!MayRelease(table, static_cast<HandleKind>(kReleases<member>), handle))
          return CUDA_SUCCESS;
      }
      const CUresult code =
          (table.*member)(&std::get<R>(results)..., std::get<A>(arguments).value...);
      if constexpr (kMakes<member> >= 0) {
        const uint64_t handle = HandleNumber(std::get<0>(results));
        if (code == CUDA_SUCCESS) {
          NoteHandle(table, ordinal.value, static_cast<HandleKind>(kMakes<member>), handle);
        }
      }
      is_ready = doing.kind != Kind::kQuery || code != CUDA_ERROR_NOT_READY;
      return is_ready && doing.kind != Kind::kRelease ? code : CUDA_SUCCESS;
    }));
    if (!done && doing.kind == Kind::kRelease) {  // the device can no longer be made current
      PyErr_Clear();
      Py_RETURN_NONE;
    }
    if (!done) return nullptr;
    return doing.kind == Kind::kQuery ? PyBool_FromLong(is_ready) : Returned(results);
  }

  static PyObject* Run(PyObject* self, PyObject* args, const Doing& doing) {
    return Run(self, args, doing, std::make_index_sequence<kResults>(),
               std::make_index_sequence<sizeof...(Parameters) - kResults>());
  }
};

// name, the driver's function, the number of results, its kind, a description for errors
#define CULAUNCH_CALLS(CALL)                                                                      \
  CALL(memory_info, cuMemGetInfo, 2, Kind::kPlain, "asking for the free memory")                  \
  CALL(priority_range, cuCtxGetStreamPriorityRange, 2, Kind::kPlain, "asking for the priorities") \
  CALL(stream_create, cuStreamCreateWithPriority, 1, Kind::kPlain, "creating a stream")           \
  CALL(stream_destroy, cuStreamDestroy, 0, Kind::kRelease, "destroying the stream")               \
  CALL(stream_query, cuStreamQuery, 0, Kind::kQuery, "asking whether the stream is done")         \
  CALL(stream_wait_event, cuStreamWaitEvent, 0, Kind::kPlain,                                     \
       "letting the stream wait for an event")                                                    \
  CALL(event_create, cuEventCreate, 1, Kind::kPlain, "creating an event")                         \
  CALL(event_destroy, cuEventDestroy, 0, Kind::kRelease, "destroying the event")                  \
  CALL(event_record, cuEventRecord, 0, Kind::kPlain, "recording the event")                       \
  CALL(event_query, cuEventQuery, 0, Kind::kQuery, "asking whether the event is done")            \
  CALL(event_synchronize, cuEventSynchronize, 0, Kind::kPlain, "waiting for the event")           \
  CALL(event_elapsed, cuEventElapsedTime, 1, Kind::kPlain,                                        \
       "asking for the time between two events")                                                  \
  CALL(copy, cuMemcpyAsync, 0, Kind::kPlain, "copying on the device")                             \
  CALL(set_8_bits, cuMemsetD8Async, 0, Kind::kPlain, "filling memory")                            \
  CALL(set_16_bits, cuMemsetD16Async, 0, Kind::kPlain, "filling memory")                          \
  CALL(set_32_bits, cuMemsetD32Async, 0, Kind::kPlain, "filling memory")                          \
  CALL(set_32_bits_apart, cuMemsetD2D32Async, 0, Kind::kPlain, "filling memory")                  \
  CALL(host_allocate, cuMemHostAlloc, 1, Kind::kPlain, "allocating pinned memory")                \
  CALL(host_free, cuMemFreeHost, 0, Kind::kRelease, "freeing pinned memory")                      \
  CALL(managed_allocate, cuMemAllocManaged, 1, Kind::kPlain, "allocating managed memory")         \
  CALL(free, cuMemFree, 0, Kind::kRelease, "freeing memory")                                      \
  CALL(array_create, cuArray3DCreate, 1, Kind::kPlain, "creating an array for textures")          \
  CALL(array_destroy, cuArrayDestroy, 0, Kind::kRelease, "destroying the array for textures")     \
  CALL(copy_3d, cuMemcpy3DAsync, 0, Kind::kPlain, "copying from or to an array for textures")     \
  CALL(texture_create, cuTexObjectCreate, 1, Kind::kPlain, "creating a texture")                  \
  CALL(texture_destroy, cuTexObjectDestroy, 0, Kind::kRelease, "destroying the texture")          \
  CALL(surface_create, cuSurfObjectCreate, 1, Kind::kPlain, "creating a surface")                 \
  CALL(surface_destroy, cuSurfObjectDestroy, 0, Kind::kRelease, "destroying the surface")

#define CULAUNCH_CALL(name, function, results, kind, what)                               \
  PyObject* Call_##name(PyObject* self, PyObject* args) {                                \
    using Made = Call<&culaunch::DriverTable::function, results, decltype(&::function)>; \
    return Made::Run(self, args, {#function, kind, what});                               \
  }
CULAUNCH_CALLS(CULAUNCH_CALL)
#undef CULAUNCH_CALL

PyMethodDef methods[] = {
#define CULAUNCH_CALL(name, function, results, kind, what) \
  {#name, Call_##name, METH_VARARGS, nullptr},
    CULAUNCH_CALLS(CULAUNCH_CALL)
#undef CULAUNCH_CALL
};

}  // namespace

int AddDriverCalls() {
  for (PyMethodDef& method : methods) {
    const Ref made(PyDescr_NewMethod(g_driver_type, &method));
    auto* type = reinterpret_cast<PyObject*>(g_driver_type);
    if (!made || PyObject_SetAttrString(type, method.ml_name, made.get()) != 0) return -1;
  }
  return 0;
}
