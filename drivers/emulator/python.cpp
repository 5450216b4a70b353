#include "python.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulator {
namespace {

// Set by `culaunch emulate`: libpython, PYTHONHOME's two folders, and sys.path, with colons
// between.
constexpr const char* kVariable = "CULAUNCH_EMULATE_PYTHON";

// The functions of Python's C API, which is the process's own, or from a library opened here.
struct Python {
  int (*is_initialized)();
  int (*ensure)();
  void (*release)(int);
  void* (*this_thread)();
  int (*holds_gil)();
  void* (*save)();
  void (*restore)(void*);
  int (*run)(const char*);
  void (*initialize)(int);
  void (*before_fork)();
  void (*after_fork_parent)();
  void (*after_fork_child)();
  void* (*pending)();
  void (*fetch)(void**, void**, void**);
  void (*raise)(void*, void*, void*);
};
constexpr const char* kNames[] = {"Py_IsInitialized",      "PyGILState_Ensure",
                                  "PyGILState_Release",    "PyGILState_GetThisThreadState",
                                  "PyGILState_Check",      "PyEval_SaveThread",
                                  "PyEval_RestoreThread",  "PyRun_SimpleString",
                                  "Py_InitializeEx",       "PyOS_BeforeFork",
                                  "PyOS_AfterFork_Parent", "PyOS_AfterFork_Child",
                                  "PyErr_Occurred",        "PyErr_Fetch",
                                  "PyErr_Restore"};
static_assert(sizeof kNames == sizeof(Python), "one name for each function");

Python python;
pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
pthread_key_t attached;

void FindFunctions(void* library) {
  auto* functions = reinterpret_cast<void**>(&python);
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    functions[i] = dlsym(library, kNames[i]);
  }
}

void DetachThread(void* state) {
  if (!IsPythonAlive()) return;
  python.restore(state);
  python.release(1);  // PyGILState_UNLOCKED: the state ends
}

// A fork in C must do for Python what os.fork does. The forks of Python itself hold the GIL.
// The GIL guards these two.
bool forks = false;
int state_of_fork = 0;

void BeforeFork() {
  if (!IsPythonAlive() || python.holds_gil() != 0) return;
  state_of_fork = python.ensure();
  forks = true;
  python.before_fork();
}

void AfterFork(void (*function)()) {
  if (!forks) return;
  forks = false;
  function();
  python.release(state_of_fork);
}

void AfterForkInParent() { AfterFork(python.after_fork_parent); }
void AfterForkInChild() { AfterFork(python.after_fork_child); }

bool Complain(const char* problem) {
  std::fprintf(stderr, "culaunch: the emulator's libcuda.so.1 does not work: %s\n", problem);
  return false;
}

// Start the Python that `culaunch emulate` recorded, without its signal handlers.
bool Initialize() {
  const char* library = std::getenv(kVariable);
  if (library == nullptr)
    return Complain("it starts Python. Start the program with `culaunch emulate PROGRAM`");
  char* fields = strdup(library);
  char* home = std::strchr(fields, ':');
  char* end = home != nullptr ? std::strchr(home + 1, ':') : nullptr;
  end = end != nullptr ? std::strchr(end + 1, ':') : nullptr;
  if (end == nullptr) return Complain("CULAUNCH_EMULATE_PYTHON is not as culaunch sets it");
  *home++ = *end = '\0';
  if (python.initialize == nullptr) {
    if (*fields == '\0') {
      return Complain(
          "Python has no shared libpython. Install the library, or a Python that has it");
    }
    // Global: extension modules look for Python's functions in the whole process.
    void* opened = dlopen(fields, RTLD_NOW | RTLD_GLOBAL);
    if (opened == nullptr) return Complain(dlerror());
    FindFunctions(opened);
  }
  const char* own = std::getenv("PYTHONHOME");
  char* before = own != nullptr ? strdup(own) : nullptr;
  setenv("PYTHONHOME", home, 1);
  python.initialize(0);
  if (before != nullptr) {
    setenv("PYTHONHOME", before, 1);
  } else {
    unsetenv("PYTHONHOME");
  }
  std::free(before);
  std::free(fields);
  python.run(
      "exec('''import os, site, sys\n"
      "sys.path[:] = os.environ['CULAUNCH_EMULATE_PYTHON'].split(':')[3:]\n"
      "for path in sys.path[:]:\n"
      "    if path.endswith('-packages'): site.addsitedir(path)\n"
      "''', {})");
  python.save();
  pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
  return true;
}

// Only a process without Python gets here: no thread waits for the mutex with the GIL.
bool InitializeOnce() {
  pthread_mutex_lock(&starting);
  if (python.is_initialized == nullptr) {
    FindFunctions(RTLD_DEFAULT);
    pthread_key_create(&attached, DetachThread);
  }
  const bool runs =
      (python.is_initialized != nullptr && python.is_initialized() != 0) || Initialize();
  pthread_mutex_unlock(&starting);
  return runs;
}

}  // namespace

bool IsPythonAlive() { return python.is_initialized() != 0; }

bool StartPython(void** find) {
  if (!InitializeOnce()) return false;
  // The GIL orders threads from here on. For a second thread, the module is imported already.
  const int state = python.ensure();
  Exception pending;
  const bool raised = TakeException(&pending);
  char code[160];
  std::snprintf(code, sizeof code,
                "exec('from culaunch._emulator.libcuda import connect\\nconnect(%llu)', {})",
                static_cast<unsigned long long>(reinterpret_cast<size_t>(find)));
  const bool runs = python.run(code) == 0;
  if (raised) RaiseAgain(pending);
  python.release(state);
  return runs || Complain("Python cannot start the emulator, as it says above");
}

void AttachThread() {
  if (python.this_thread() != nullptr) return;
  python.ensure();
  pthread_setspecific(attached, python.save());
}

bool TakeException(Exception* taken) {
  const int state = python.ensure();
  const bool raised = python.pending() != nullptr;
  if (raised) python.fetch(&taken->type, &taken->value, &taken->traceback);
  python.release(state);
  return raised;
}

void RaiseAgain(const Exception& taken) {
  const int state = python.ensure();
  python.raise(taken.type, taken.value, taken.traceback);
  python.release(state);
}

}  // namespace emulator
