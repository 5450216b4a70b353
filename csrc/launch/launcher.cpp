#include "launch/launcher.h"

#include <culaunch/demangle.h>
#include <culaunch/guard.h>

#include <cstddef>
#include <new>
#include <string>

#include "driver/errors.h"
#include "launch/configuration.h"
#include "launch/launch_failure.h"
#include "python/call_keeper.h"
#include "python/numbers.h"
#include "python/recording.h"
#include "python/small_buffer.h"
#include "python/type_builder.h"
#include "python/upcalls.h"

namespace {

PyTypeObject* g_launcher_type = nullptr;

struct LauncherObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  KernelObject* kernel;    // owned
  PyObject* stream_owner;  // owned: keeps a stream object alive; null: none was given
  int stream_ordinal;      // the given stream's device; -1: any
  culaunch::LaunchConfig config;
  culaunch::DriverLaunchConfig driver_config;
};

LauncherObject* LauncherOf(PyObject* self) { return reinterpret_cast<LauncherObject*>(self); }

// The error of an unreadable array says why, but lacks the name of the argument.
CULAUNCH_RARE void NameArgument(size_t index) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const Ref kind(type), error(value), trace(traceback);
  PyErr_Format(kind.get(), "argument %zu: %S", index, error.get());
}

// Raise the error for wrong arguments through Python, which composes the message.
CULAUNCH_RARE PyObject* RaiseMismatch(LauncherObject* self, Mismatch mismatch,
                                      PyObject* const* args, size_t index,
                                      const Conversion& conversion) {
  if (mismatch == Mismatch::kPython) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_Format(PyExc_BufferError, "reading argument %zu, a %R, failed without a reason", index,
                   reinterpret_cast<PyObject*>(Py_TYPE(args[index])));
    } else if (PyErr_ExceptionMatches(PyExc_ValueError) != 0) {
      NameArgument(index);
    }
    return nullptr;
  }
  CallUp(Upcall::kRaiseArgument, "OnOsLi", self, static_cast<Py_ssize_t>(index), args[index],
         MismatchName(mismatch), conversion.detail, conversion.has_array ? conversion.ordinal : -1);
  return nullptr;
}

CULAUNCH_RARE PyObject* RaiseCount(LauncherObject* self, size_t count, PyObject* keyword_names) {
  CallUp(Upcall::kRaiseCount, "OnO", self, static_cast<Py_ssize_t>(count),
         keyword_names != nullptr ? keyword_names : Py_None);
  return nullptr;
}

// Raise why the driver refused the launch.
CULAUNCH_RARE PyObject* RaiseLaunch(LauncherObject* self, const CUlaunchConfig& config, int ordinal,
                                    CUresult code) {
  culaunch::KernelState& state = *self->kernel->state;
  if (ordinal < 0) ordinal = culaunch::CurrentDevice(state.driver());
  RaiseLaunchFailure(state, config, ordinal, code);
  return nullptr;
}

// Kernels have at most 4 KiB of parameters, or 32,764 bytes from CUDA 12.1 on (programming guide).
using ParameterBlock = SmallBuffer<unsigned char, 4096, 64>;
using ParameterPointers = SmallBuffer<void*, 64>;

PyObject* CallLauncher(PyObject* callable, PyObject* const* args, size_t nargsf,
                       PyObject* keyword_names) {
  LauncherObject* self = LauncherOf(callable);
  if (CULAUNCH_UNLIKELY(IsRecording())) {
    Ref recorded;
    if (RecordCall(callable, "call", args, ArgumentCount(nargsf), keyword_names, &recorded)) {
      return recorded.release();
    }
  }
  KernelObject* kernel = self->kernel;
  culaunch::KernelState& state = *kernel->state;
  const auto count = ArgumentCount(nargsf);
  if (CULAUNCH_UNLIKELY(count != kernel->count || keyword_names != nullptr)) {
    return RaiseCount(self, count, keyword_names);
  }
  ParameterBlock block_buffer(kernel->bytes);
  ParameterPointers pointer_buffer(count);
  unsigned char* const block = block_buffer.data();
  void** const pointers = pointer_buffer.data();
  Conversion conversion(state.driver());
  if (self->stream_owner != nullptr) {
    conversion.stream_known = true;
    conversion.stream = self->config.stream.handle;
    conversion.ordinal = self->stream_ordinal;
  }
  size_t index = 0;
  const Mismatch mismatch =
      ConvertAll(conversion, kernel->slots, args, count, block, pointers, &index);
  if (CULAUNCH_UNLIKELY(mismatch != Mismatch::kNone)) {
    return RaiseMismatch(self, mismatch, args, index, conversion);
  }
  CUlaunchConfig config = self->driver_config.get();
  config.hStream = conversion.stream;
  conversion.TellDriver();
  CUresult code;
  {
    // The launch waits while the stream's queue is full.
    const ReleaseGil released;
    code = state.Launch(config, conversion.ordinal, pointers);
  }
  if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
    return RaiseLaunch(self, config, conversion.ordinal, code);
  }
  if (CULAUNCH_UNLIKELY(CallKeeper::AreNoted())) CallKeeper::Note(callable, args, count);
  Py_RETURN_NONE;
}

PyObject* Make(KernelObject* kernel, const culaunch::LaunchConfig& config, PyObject* stream) {
  int ordinal = -1;
  const bool is_valid = Guarded<bool>(nullptr, false, [&] {
    config.Validate();
    if (stream != nullptr && !culaunch::IsDefaultStream(config.stream.handle)) {
      culaunch::Driver& driver = kernel->state->driver();
      driver.Check(culaunch::StreamDevice(driver, config.stream.handle, &ordinal),
                   "finding the device of the stream");
    }
    return true;
  });
  if (!is_valid) return nullptr;
  PyObject* object = PyType_GenericAlloc(g_launcher_type, 0);
  if (object == nullptr) return nullptr;
  LauncherObject* self = LauncherOf(object);
  Py_INCREF(reinterpret_cast<PyObject*>(kernel));
  Py_XINCREF(stream);
  self->vectorcall = CallLauncher;
  self->kernel = kernel;
  self->stream_owner = stream;
  self->stream_ordinal = ordinal;
  new (&self->config) culaunch::LaunchConfig(config);
  new (&self->driver_config) culaunch::DriverLaunchConfig(config);
  kernel->is_configured.store(true, std::memory_order_relaxed);
  return object;
}

int TraverseLauncher(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<PyObject*>(LauncherOf(self)->kernel));
  Py_VISIT(LauncherOf(self)->stream_owner);
  return 0;
}

// The kernel stays until the launcher is freed, because a call may arrive until then. The kernel's
// own clear breaks the cycle with its cache.
int ClearLauncher(PyObject*) { return 0; }

void DeallocLauncher(PyObject* self) {
  DeallocCollected(self, [self] {
    Py_XDECREF(reinterpret_cast<PyObject*>(LauncherOf(self)->kernel));
    Py_XDECREF(LauncherOf(self)->stream_owner);
  });
}

PyObject* DimsTuple(const culaunch::Dim3& dims) {
  return Py_BuildValue("III", dims.x, dims.y, dims.z);
}
PyObject* OptionalDims(const culaunch::Dim3& dims) {
  return dims.IsGiven() ? DimsTuple(dims) : Ref::Borrow(Py_None).release();
}
PyObject* Switch(bool is_on) { return PyBool_FromLong(static_cast<long>(is_on)); }
PyObject* OptionalInt(bool is_given, int number) {
  return is_given ? PyLong_FromLong(number) : Ref::Borrow(Py_None).release();
}

PyObject* GetKernel(PyObject* self, void*) {
  return Ref::Borrow(reinterpret_cast<PyObject*>(LauncherOf(self)->kernel)).release();
}
PyObject* GetGrid(PyObject* self, void*) { return DimsTuple(LauncherOf(self)->config.grid); }
PyObject* GetBlock(PyObject* self, void*) { return DimsTuple(LauncherOf(self)->config.block); }
PyObject* GetSharedMemory(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(LauncherOf(self)->config.shared_memory);
}
PyObject* GetStream(PyObject* self, void*) {
  PyObject* stream = LauncherOf(self)->stream_owner;
  return Ref::Borrow(stream != nullptr ? stream : Py_None).release();
}
PyObject* GetStreamDevice(PyObject* self, void*) {
  return PyLong_FromLong(LauncherOf(self)->stream_ordinal);
}

PyObject* Repr(PyObject* self) {
  const culaunch::LaunchConfig& config = LauncherOf(self)->config;
  std::string text = "<culaunch.Launcher of " +
                     culaunch::Demangle(LauncherOf(self)->kernel->state->name()) + ", grid " +
                     config.grid.ToString() + ", block " + config.block.ToString() + ", " +
                     std::to_string(config.shared_memory) + " bytes of shared memory";
#define CULAUNCH_DIMS(name, flag, attribute, value, text_of_it) \
  if (config.name.IsGiven()) text += ", " #name " " + config.name.ToString();
#define CULAUNCH_SWITCH(name, flag, attribute, value, text_of_it) \
  if (config.name) text += ", " #name;
#define CULAUNCH_INT(name, flag, attribute, value, text_of_it) \
  if (config.has_##name) text += ", " #name " " + std::to_string(config.name);
  CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_DIMS, CULAUNCH_SWITCH, CULAUNCH_INT)
#undef CULAUNCH_DIMS
#undef CULAUNCH_SWITCH
#undef CULAUNCH_INT
  return PyUnicode_FromString((text + ">").c_str());
}

bool IsGiven(PyObject* object) { return object != nullptr && object != Py_None; }

}  // namespace

KernelObject* KernelOfLauncher(PyObject* launcher) { return LauncherOf(launcher)->kernel; }

PyObject* LauncherFromKey(KernelObject* kernel, PyObject* key) {
  const Py_ssize_t size = PyTuple_Check(key) ? PyTuple_Size(key) : 0;
  if (size < 2 || size > 4) {
    PyErr_Format(PyExc_TypeError,
                 "a kernel takes [grid, block], [grid, block, shared_memory] or "
                 "[grid, block, shared_memory, stream] (got [%S])",
                 Spelled(key).get());
    return nullptr;
  }
  culaunch::LaunchConfig config;
  PyObject* stream = size > 3 ? PyTuple_GetItem(key, 3) : nullptr;
  if (!ReadDims("grid", PyTuple_GetItem(key, 0), &config.grid) ||
      !ReadDims("block", PyTuple_GetItem(key, 1), &config.block) ||
      (size > 2 && !ReadBytes("shared_memory", PyTuple_GetItem(key, 2), &config.shared_memory)) ||
      (IsGiven(stream) && !ReadStream(stream, &config.stream.handle))) {
    return nullptr;
  }
  return Make(kernel, config, IsGiven(stream) ? stream : nullptr);
}

// A switch must be a bool: text such as "no" would be true.
static bool ReadSwitch(const char* name, PyObject* given, bool* is_on) {
  if (given == nullptr) return true;
  if (!PyBool_Check(given)) {
    const Ref spelled = Spelled(given);
    if (spelled) {
      PyErr_Format(PyExc_TypeError, "%s must be True or False (got %U)", name, spelled.get());
    }
    return false;
  }
  *is_on = given == Py_True;
  return true;
}

static bool ReadOptionalDims(const char* name, PyObject* given, culaunch::Dim3* dims) {
  return !IsGiven(given) || ReadDims(name, given, dims);
}

static bool ReadOptionalInt(const char* name, PyObject* given, bool* is_given, int* number) {
  if (!IsGiven(given)) return true;
  int64_t value = 0;
  const Ref integer(PyBool_Check(given) ? nullptr : PyNumber_Index(given));
  if (!integer || ReadInt(integer.get(), &value) != IntRange::kSigned ||
      value != static_cast<int>(value)) {
    PyErr_Clear();
    PyErr_Format(integer ? PyExc_OverflowError : PyExc_TypeError,
                 "%s must be an int of 32 bits (got %S)", name, Spelled(given).get());
    return false;
  }
  *is_given = true;
  *number = static_cast<int>(value);
  return true;
}

PyObject* LauncherFromKeywords(KernelObject* kernel, PyObject* args, PyObject* keywords) {
  Py_ssize_t count = 0;
  const auto given = [&](const char* name) {
    PyObject* object = keywords != nullptr ? PyDict_GetItemString(keywords, name) : nullptr;
    count += static_cast<Py_ssize_t>(object != nullptr);
    return object;
  };
  PyObject* const grid = given("grid");
  PyObject* const block = given("block");
  if (grid == nullptr || block == nullptr) {
    PyErr_SetString(PyExc_TypeError, "a launch needs grid= and block=");
    return nullptr;
  }
  PyObject* const shared = given("shared_memory");
  PyObject* const stream = given("stream");
  culaunch::LaunchConfig config;
  if (!ReadDims("grid", grid, &config.grid) || !ReadDims("block", block, &config.block) ||
      (IsGiven(shared) && !ReadBytes("shared_memory", shared, &config.shared_memory)) ||
      (IsGiven(stream) && !ReadStream(stream, &config.stream.handle))) {
    return nullptr;
  }
#define CULAUNCH_DIMS(name, flag, attribute, value, text) \
  if (!ReadOptionalDims(#name, given(#name), &config.name)) return nullptr;
#define CULAUNCH_SWITCH(name, flag, attribute, value, text) \
  if (!ReadSwitch(#name, given(#name), &config.name)) return nullptr;
#define CULAUNCH_INT(name, flag, attribute, value, text) \
  if (!ReadOptionalInt(#name, given(#name), &config.has_##name, &config.name)) return nullptr;
  CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_DIMS, CULAUNCH_SWITCH, CULAUNCH_INT)
#undef CULAUNCH_DIMS
#undef CULAUNCH_SWITCH
#undef CULAUNCH_INT
  if (PyTuple_Size(args) != 0 || count != PyDict_Size(keywords)) {
    PyErr_SetString(PyExc_TypeError, "configure takes the options of a launch, by keyword only");
    return nullptr;
  }
  return Make(kernel, config, IsGiven(stream) ? stream : nullptr);
}

int AddLauncherType(PyObject* module) {
  g_launcher_type =
      TypeBuilder("culaunch._core.Launcher", sizeof(LauncherObject),
                  Py_TPFLAGS_DISALLOW_INSTANTIATION)
          .Slot(Py_tp_dealloc, DeallocLauncher)
          .Slot(Py_tp_repr, Repr)
          .Doc(
              "A kernel with a fixed launch configuration.\n\n"
              "``launcher(x, y, n)`` launches the kernel with these arguments and returns None.\n"
              "``kernel[grid, block]`` and ``kernel.configure(...)`` return a launcher. It keeps\n"
              "the kernel and its module alive, and many threads may call it.\n\n"
              "Examples\n"
              "--------\n"
              ">>> launcher = module[\"add\"].configure(grid=1, block=256)\n"
              ">>> launcher(y, x, x, 256)\n"
              ">>> launcher.grid, launcher.block\n"
              "((1, 1, 1), (256, 1, 1))")
          .Collected(TraverseLauncher, ClearLauncher)
          .Callable(offsetof(LauncherObject, vectorcall))
          // The signature for help(). Calls go to the vectorcall. Python would give another one
          // only to subclasses, and the type has none.
          .Method(
              "__call__",
              reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&PyVectorcall_Call)),
              METH_VARARGS | METH_KEYWORDS | METH_COEXIST,
              "__call__($self, /, *arguments)\n--\n\n"
              "Launch the kernel with one argument for each of its parameters, in order.\n\n"
              "The launch is asynchronous, in the launcher's stream or the current one. The table\n"
              "of arguments is in docs/launching.md.\n\n"
              "Raises\n"
              "------\n"
              "TypeError, ValueError, OverflowError\n"
              "    If an argument does not fit its parameter.\n"
              "LaunchError\n"
              "    If the driver refuses the launch.")
          .Property("kernel", GetKernel, "The kernel that it launches.")
          .Property("grid", GetGrid, "The grid in blocks, (x, y, z).")
          .Property("block", GetBlock, "The block in threads, (x, y, z).")
          .Property("shared_memory", GetSharedMemory, "Dynamic shared memory of a block in bytes.")
          .Property("stream", GetStream, "The stream as it was given, or None.")
          .Property("_stream_device", GetStreamDevice)
#define CULAUNCH_GETTER(name, text, expression)                          \
  .Property(                                                             \
      #name,                                                             \
      [](PyObject* self, void*) -> PyObject* {                           \
        const culaunch::LaunchConfig& config = LauncherOf(self)->config; \
        return expression;                                               \
      },                                                                 \
      text)
#define CULAUNCH_DIMS(name, flag, attribute, value, text) \
  CULAUNCH_GETTER(name, text " None: not given.", OptionalDims(config.name))
#define CULAUNCH_SWITCH(name, flag, attribute, value, text) \
  CULAUNCH_GETTER(name, text, Switch(config.name))
#define CULAUNCH_INT(name, flag, attribute, value, text) \
  CULAUNCH_GETTER(name, text " None: not given.", OptionalInt(config.has_##name, config.name))
              CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_DIMS, CULAUNCH_SWITCH, CULAUNCH_INT)
#undef CULAUNCH_GETTER
#undef CULAUNCH_DIMS
#undef CULAUNCH_SWITCH
#undef CULAUNCH_INT
          .AddTo(module);
  return g_launcher_type != nullptr ? 0 : -1;
}
