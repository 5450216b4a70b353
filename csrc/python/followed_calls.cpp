#include "python/followed_calls.h"

#include "python/answers.h"
#include "python/following.h"
#include "python/upcalls.h"

#if PY_VERSION_HEX < 0x030b0000
#include <frameobject.h>
#endif

// Each thread has its own copy of the instructions.
#if defined(Py_GIL_DISABLED) && PY_VERSION_HEX >= 0x030e0000
#define CULAUNCH_BYTECODE_OF_THREADS
#endif

namespace {

// ---- a frame, from its first word to its next instruction

#if PY_VERSION_HEX < 0x030b0000
using Frame = PyFrameObject;
#elif PY_VERSION_HEX < 0x030c0000
struct Frame {
  PyObject *function, *globals, *builtins, *locals, *code, *object;
  Frame* previous;
  char* instruction;
};
#else
// The same from 3.12 to 3.14, and therefore in the stable ABI. From 3.14 on, `code` has two tag
// bits. If one of them is set, the frame has no reference of its own.
struct Frame {
  uintptr_t code;
  Frame* previous;
  PyObject *function, *globals, *builtins, *locals, *object;
  char* instruction;
#ifdef CULAUNCH_BYTECODE_OF_THREADS
  void* stack;
  int32_t bytecode;  // the number of the copy that it runs
#endif
};
constexpr uintptr_t kTags = 3;
#endif

#if PY_VERSION_HEX < 0x030b0000
PyObject* CodeOfFrame(const Frame* frame) { return reinterpret_cast<PyObject*>(frame->f_code); }
PyObject* BuiltinsOf(const Frame* frame) { return frame->f_builtins; }
#elif PY_VERSION_HEX < 0x030c0000
PyObject* CodeOfFrame(const Frame* frame) { return frame->code; }
PyObject* BuiltinsOf(const Frame* frame) { return frame->builtins; }
#else
PyObject* CodeOfFrame(const Frame* frame) {
  return reinterpret_cast<PyObject*>(frame->code & ~kTags);
}
PyObject* BuiltinsOf(const Frame* frame) { return frame->builtins; }
#endif

// ---- CPython's functions

using Evaluate = PyObject* (*)(PyThreadState*, Frame*, int);

struct CPython {
  Evaluate (*get)(PyInterpreterState*);
  void (*set)(PyInterpreterState*, Evaluate);
  Evaluate run;
  Py_ssize_t (*number)(void (*)(void*));
  int (*read)(PyObject*, Py_ssize_t, void**);
  int (*write)(PyObject*, Py_ssize_t, void*);
};

CPython cpython;
Py_ssize_t slot = -1;       // where code objects store the upcall's answer
Py_ssize_t code_size = 0;   // where the instructions begin in code
Py_ssize_t first = 0;       // a new frame's first instruction, from there
Evaluate before = nullptr;  // the evaluation function of another package
int followed_threads = 0;

thread_local const Frame* passed_on = nullptr;

#ifdef Py_GIL_DISABLED
PyMutex mutex;
class Lock {
 public:
  Lock() { PyMutex_Lock(&mutex); }
  ~Lock() { PyMutex_Unlock(&mutex); }
};
#else
class Lock {
 public:
  Lock() {}
};
#endif

// ---- frames with an unknown layout are left alone

#if PY_VERSION_HEX >= 0x030b0000
struct Probe {
  PyObject *code, *builtins;
  bool is_known;
};
Probe probe;

PyObject* Look(PyThreadState* thread, Frame* frame, int throwing) {
  if (CodeOfFrame(frame) == probe.code && BuiltinsOf(frame) == probe.builtins) {
    first = frame->instruction - (reinterpret_cast<char*>(probe.code) + code_size);
    // Before 3.13, a frame stores the instruction that it ran last.
    probe.is_known = first == 0 || first == -2;
  }
  return cpython.run(thread, frame, throwing);
}

bool LayoutIsKnown() {
  const Ref globals(PyDict_New());
  if (!globals || PyDict_SetItemString(globals.get(), "__builtins__", PyEval_GetBuiltins()) != 0) {
    return false;
  }
  const Ref evaluate(Py_XNewRef(PyDict_GetItemString(PyEval_GetBuiltins(), "eval")));
  if (!evaluate) return false;
  const Ref function(PyObject_CallFunction(evaluate.get(), "sO", "lambda: None", globals.get()));
  const Ref code(function ? PyObject_GetAttrString(function.get(), "__code__") : nullptr);
  const Ref type(code ? PyObject_Type(code.get()) : nullptr);
  const Ref size(type ? PyObject_GetAttrString(type.get(), "__basicsize__") : nullptr);
  if (!size) return false;
  code_size = PyLong_AsSsize_t(size.get());
  probe = {code.get(), PyEval_GetBuiltins(), false};
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  const Evaluate other = cpython.get(interpreter);
  cpython.set(interpreter, Look);
  const Ref result(PyObject_CallNoArgs(function.get()));
  cpython.set(interpreter, other);
  return probe.is_known && result;
}
#else
bool LayoutIsKnown() { return true; }
#endif

// ---- a frame's code is replaced

// The new code has the same instructions at the same places, so a generator that has begun
// continues in it.
void Replace(Frame* frame, PyObject* code, PyObject* builtins) {
  Py_INCREF(code);
#if PY_VERSION_HEX < 0x030b0000
  PyCodeObject* old = frame->f_code;
  frame->f_code = reinterpret_cast<PyCodeObject*>(code);
  Py_INCREF(builtins);
  Py_SETREF(frame->f_builtins, builtins);
  Py_DECREF(old);
#else
  PyObject* old = CodeOfFrame(frame);
  char* begin = reinterpret_cast<char*>(old) + code_size;
  char* target = reinterpret_cast<char*>(code) + code_size;
#ifdef CULAUNCH_BYTECODE_OF_THREADS
  begin = reinterpret_cast<PyCodeObject*>(old)->co_tlbc->entries[frame->bytecode];
  frame->bytecode = 0;  // the first copy is in the code itself
#endif
  frame->instruction = target + (frame->instruction - begin);
  frame->builtins = builtins;  // borrowed
#if PY_VERSION_HEX < 0x030c0000
  frame->code = code;
  Py_DECREF(old);
#else
  const bool owns = (frame->code & kTags) == 0;
  frame->code = reinterpret_cast<uintptr_t>(code);
  if (owns) Py_DECREF(old);
#endif
#endif
}

// Puts an error aside. One is set already if it is thrown into a generator.
class ErrorAside {
 public:
  ErrorAside() { PyErr_Fetch(&type_, &value_, &trace_back_); }
  ErrorAside(const ErrorAside&) = delete;
  ErrorAside& operator=(const ErrorAside&) = delete;
  // A new error replaces it.
  ~ErrorAside() {
    if (PyErr_Occurred() == nullptr) {
      PyErr_Restore(type_, value_, trace_back_);
      return;
    }
    Py_XDECREF(type_);
    Py_XDECREF(value_);
    Py_XDECREF(trace_back_);
  }

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *trace_back_ = nullptr;
};

// A new reference, or null with a Python error set.
PyObject* Ask(Upcall upcall, const char* format, PyObject* first, PyObject* second) {
  const NotFollowed block;
  return CallUp(upcall, format, first, second).release();
}

// False with a Python error set.
bool Remember(PyObject* code, PyObject* answer) {
  if (cpython.write(code, slot, answer) != 0) return false;
  Py_INCREF(answer);
  return true;
}

// Ask once for each code object. None: run it unchanged. False: follow nothing in it, such as an
// import. Borrowed, or null with a Python error set.
PyObject* AnswerFor(PyObject* code) {
  void* known = nullptr;
  if (cpython.read(code, slot, &known) != 0) return nullptr;
  if (known != nullptr) return static_cast<PyObject*>(known);
  const Ref answer(Ask(Upcall::kFollowedCode, "(O)", code, nullptr));
  if (!answer || !Remember(code, answer.get())) return nullptr;
  // A generator continues in the code that replaced its own. That code is not replaced again.
  const bool replaces = PyTuple_Check(answer.get()) != 0;
  if (replaces && !Remember(PyTuple_GetItem(answer.get(), 0), Py_None)) return nullptr;
  return answer.get();
}

// False with a Python error set.
bool Follow(Frame* frame, bool* pauses) {
  PyObject* known = AnswerFor(CodeOfFrame(frame));
  if (known == nullptr) return false;
  *pauses = known == Py_False;
  if (known == Py_None || *pauses) return true;
  PyObject *asking, *key, *usual, *answering;
  if (!PyArg_ParseTuple(known, "OOOO", &asking, &key, &usual, &answering)) return false;
  // Code in a body or in a sandbox may have its own builtins.
  PyObject* builtins = BuiltinsOf(frame);
  if (builtins == usual) {
    builtins = answering;
  } else {
    builtins = Ask(Upcall::kFollowedBuiltins, "OO", builtins, key);
    if (builtins == nullptr) return false;
    Py_DECREF(builtins);  // Python's half keeps it for ever
  }
  Replace(frame, asking, builtins);
  return true;
}

PyObject* EvaluateFollowed(PyThreadState* thread, Frame* frame, int throwing);

// Install the evaluation function only while a thread is followed. Otherwise a call costs nothing.
void CountThreads(int change) {
  const Lock lock;
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  followed_threads += change;
  const Evaluate now = cpython.get(interpreter);
  if (change != 0) AnswerOperators(followed_threads != 0);
  if (followed_threads != 0 && now != EvaluateFollowed) {
    before = now == cpython.run ? nullptr : now;
    cpython.set(interpreter, EvaluateFollowed);
  } else if (followed_threads == 0 && now == EvaluateFollowed) {
    cpython.set(interpreter, before == nullptr ? cpython.run : before);
    before = nullptr;
  }
}

PyObject* Evaluated(PyThreadState* thread, Frame* frame, int throwing) {
  // Another package's function may call this one again, so pass each frame on only once.
  const Evaluate next = passed_on == frame ? nullptr : before;
  if (next == nullptr) return cpython.run(thread, frame, throwing);
  const Frame* outer = std::exchange(passed_on, frame);
  PyObject* result = next(thread, frame, throwing);
  passed_on = outer;
  return result;
}

PyObject* EvaluateFollowed(PyThreadState* thread, Frame* frame, int throwing) {
  // Another package may have saved this function and set it again.
  if (followed_threads == 0) CountThreads(0);
  // Raise the error in the frame: this is the only way to end it in every version.
  bool pauses = false;
  if (is_followed && throwing == 0) {
    if (!Follow(frame, &pauses)) throwing = 1;
  } else if (is_followed) {
    const ErrorAside aside;
    Follow(frame, &pauses);
  }
  if (!pauses) return Evaluated(thread, frame, throwing);
  const NotFollowed block;
  return Evaluated(thread, frame, throwing);
}

void Release(void* answer) { Py_XDECREF(static_cast<PyObject*>(answer)); }

}  // namespace

PyObject* OpenFrames(PyObject*, PyObject* args) {
  unsigned long long get, set, run, number, read, write;
  if (!PyArg_ParseTuple(args, "KKKKKK:open_frames", &get, &set, &run, &number, &read, &write)) {
    return nullptr;
  }
  cpython.get = reinterpret_cast<decltype(cpython.get)>(get);
  cpython.set = reinterpret_cast<decltype(cpython.set)>(set);
  cpython.run = reinterpret_cast<decltype(cpython.run)>(run);
  cpython.number = reinterpret_cast<decltype(cpython.number)>(number);
  cpython.read = reinterpret_cast<decltype(cpython.read)>(read);
  cpython.write = reinterpret_cast<decltype(cpython.write)>(write);
  if (LayoutIsKnown() && slot < 0) slot = cpython.number(Release);
  if (PyErr_Occurred() != nullptr) return nullptr;
  return PyBool_FromLong(slot >= 0);
}

PyObject* FollowCalls(PyObject*, PyObject* on) {
  const int wanted = PyObject_IsTrue(on);
  if (wanted < 0) return nullptr;
  const bool was = is_followed;
  if (slot >= 0 && was != (wanted != 0)) {
    is_followed = wanted != 0;
    CountThreads(is_followed ? 1 : -1);
  }
  return PyBool_FromLong(was);
}
