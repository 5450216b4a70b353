#include "driver/python_function.h"

#include <cuda.h>

#include <chrono>
#include <cstddef>

#include "python/type_builder.h"
#include "python/upcalls.h"

namespace {

PyTypeObject* g_function_type = nullptr;

// An exception can reach Python code anywhere: Ctrl-C, a signal's handler, another thread. ctypes
// would print it, and leave the result of its C function unwritten. No Python code runs between
// ctypes and this object. The object keeps the exception, and the caller raises it.
struct FunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* state;      // its `lock` is held during the call; a fork replaces it
  PyObject* method;     // returns on success, and raises otherwise
  PyObject* translate;  // translate(method, exception) -> code, or the exception that is kept
  bool is_repeated;     // after an interrupt: it is short, and repeating it is harmless
};

FunctionObject* PythonFunctionOf(PyObject* self) { return reinterpret_cast<FunctionObject*>(self); }

thread_local PyObject* t_kept = nullptr;
thread_local int t_depth = 0;

using Clock = std::chrono::steady_clock;

// The frame whose C call reached the driver, and the time until which `t_kept` waits for this call
// to return.
thread_local PyObject* t_caller = nullptr;
thread_local Clock::time_point t_latest;

Ref CurrentFrame() { return Ref::Borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame())); }

// The current exception, normalized; none is set afterwards.
Ref TakeException() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value != nullptr && trace != nullptr) PyException_SetTraceback(value, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return Ref(value);
}

void Keep(Ref exception) {
  if (!exception) return;
  if (t_kept != nullptr && t_kept != exception.get()) {
    PyException_SetContext(exception.get(), t_kept);  // steals the reference
    t_kept = nullptr;
  }
  Ref before(t_kept);
  t_kept = exception.release();
}

// Whether Python code runs inside the call that reached the driver. It may be a finalizer, in which
// Python discards exceptions.
bool IsInsideTheCall() {
  Ref frame = CurrentFrame();
  if (t_caller == nullptr || frame.get() == t_caller) return false;
  while (frame && frame.get() != Py_None && frame.get() != t_caller) {
    frame = Ref(PyObject_GetAttrString(frame.get(), "f_back"));
  }
  if (!frame) PyErr_Clear();
  return frame.get() == t_caller;
}

int Deliver(void*) {
  if (t_kept == nullptr || t_depth != 0) return 0;
  // Usually the caller of the driver raises the exception. A caller that ignores the failure may
  // run Python code for long; the exception is then raised there.
  if (Clock::now() < t_latest && IsInsideTheCall()) {
    Py_AddPendingCall(Deliver, nullptr);
    return 0;
  }
  return RaiseKept() ? -1 : 0;
}

// Whether this is the thread in which Python runs signal handlers.
bool IsMainThread() {
  const Ref threading = Import(modules::kThreading);
  const Ref main(threading ? PyObject_CallMethod(threading.get(), "main_thread", nullptr)
                           : nullptr);
  const Ref ident(main ? PyObject_GetAttrString(main.get(), "ident") : nullptr);
  const bool is_main = !ident || PyLong_AsUnsignedLong(ident.get()) == PyThread_get_thread_ident();
  if (PyErr_Occurred() != nullptr) Keep(TakeException());
  return is_main;
}

// The thread's Python code receives the stored exception as soon as it runs again, unless the
// caller of the driver raises it before.
void Announce() {
  if (IsMainThread()) {
    if (t_caller == nullptr) {
      t_caller = CurrentFrame().release();
      t_latest = Clock::now() + std::chrono::milliseconds(100);
    }
    Py_AddPendingCall(Deliver, nullptr);
  } else {
    PyThreadState_SetAsyncExc(PyThread_get_thread_ident(),
                              reinterpret_cast<PyObject*>(Py_TYPE(t_kept)));
  }
}

// One attempt. If it does not return, null with an exception set.
Ref Attempt(FunctionObject* self, PyObject* const* args, size_t nargsf) {
  const Ref lock(PyObject_GetAttrString(self->state, "lock"));
  const Ref locked(lock ? PyObject_CallMethod(lock.get(), "acquire", nullptr) : nullptr);
  if (!locked) return Ref();
  Ref result(PyObject_Vectorcall(self->method, args, nargsf, nullptr));
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const Ref released(PyObject_CallMethod(lock.get(), "release", nullptr));
  if (!released) PyErr_Clear();
  PyErr_Restore(type, value, trace);
  return result;
}

// The code of an exception, or -1 for one that was kept.
long Translate(FunctionObject* self, Ref exception) {
  for (int attempts = 0; attempts < 16; ++attempts) {
    const Ref code(
        PyObject_CallFunctionObjArgs(self->translate, self->method, exception.get(), nullptr));
    if (code && PyLong_Check(code.get())) return PyLong_AsLong(code.get());
    if (code && PyExceptionInstance_Check(code.get())) {
      Keep(Ref::Borrow(code.get()));
      return -1;
    }
    if (code) break;
    Keep(TakeException());  // an interrupt during the translation of the other
  }
  Keep(std::move(exception));
  return -1;
}

long Run(FunctionObject* self, PyObject* const* args, size_t nargsf) {
  // After an interrupt, start no long operation.
  if (t_kept != nullptr && !self->is_repeated) return CUDA_ERROR_UNKNOWN;
  for (int attempts = 0; attempts < 16; ++attempts) {
    if (Attempt(self, args, nargsf)) return CUDA_SUCCESS;
    const long code = Translate(self, TakeException());
    if (code >= 0) return code;
    if (!self->is_repeated) break;
  }
  return CUDA_ERROR_UNKNOWN;
}

PyObject* CallFunction(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject*) {
  if (Py_IsInitialized() == 0) return PyLong_FromLong(CUDA_ERROR_DEINITIALIZED);
  ++t_depth;
  const long code = Run(PythonFunctionOf(callable), args, nargsf);
  --t_depth;
  if (t_kept != nullptr && t_depth == 0) Announce();
  return PyLong_FromLong(code);
}

// DriverFunction(state, method, translate, is_repeated)
PyObject* NewPythonFunction(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *state, *method, *translate;
  int is_repeated = 0;
  if (!PyArg_ParseTuple(args, "OOOp:DriverFunction", &state, &method, &translate, &is_repeated)) {
    return nullptr;
  }
  PyObject* self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  PythonFunctionOf(self)->vectorcall = CallFunction;
  PythonFunctionOf(self)->state = Ref::Borrow(state).release();
  PythonFunctionOf(self)->method = Ref::Borrow(method).release();
  PythonFunctionOf(self)->translate = Ref::Borrow(translate).release();
  PythonFunctionOf(self)->is_repeated = is_repeated != 0;
  return self;
}

int TraversePythonFunction(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(PythonFunctionOf(self)->state);
  Py_VISIT(PythonFunctionOf(self)->method);
  Py_VISIT(PythonFunctionOf(self)->translate);
  return 0;
}

// The functions that it calls stay until it is freed, because C code may call it until then.
int ClearPythonFunction(PyObject*) { return 0; }

void DeallocPythonFunction(PyObject* self) {
  DeallocCollected(self, [self] {
    Py_XDECREF(PythonFunctionOf(self)->state);
    Py_XDECREF(PythonFunctionOf(self)->method);
    Py_XDECREF(PythonFunctionOf(self)->translate);
  });
}

}  // namespace

bool RaiseKept() {
  if (t_kept == nullptr) return false;
  const Ref exception(std::exchange(t_kept, nullptr));
  Py_CLEAR(t_caller);
  // The exception that Announce scheduled for this thread has now arrived.
  if (!IsMainThread()) PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), nullptr);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
  return true;
}

int AddDriverFunctionType(PyObject* module) {
  g_function_type = TypeBuilder("culaunch._core.DriverFunction", sizeof(FunctionObject))
                        .Slot(Py_tp_new, NewPythonFunction)
                        .Slot(Py_tp_dealloc, DeallocPythonFunction)
                        .Collected(TraversePythonFunction, ClearPythonFunction)
                        .Callable(offsetof(FunctionObject, vectorcall))
                        .AddTo(module);
  return g_function_type != nullptr ? 0 : -1;
}
