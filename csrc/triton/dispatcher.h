// _core.TritonDispatcher: the native half of a Triton kernel's call, from Python arguments to the
// launch of the variant that they select. dispatcher[grid] gives the object that is called.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "triton/guards.h"
#include "triton/specialize.h"
#include "triton/tuning.h"
#include "triton/variant.h"

namespace triton {

// In free-threaded builds the caches need a lock; with the GIL nothing else runs meanwhile.
class FreeThreadedLock {
#ifdef Py_GIL_DISABLED
 public:
  explicit FreeThreadedLock(std::mutex& mutex) : lock_(mutex) {}

 private:
  std::lock_guard<std::mutex> lock_;
#else
 public:
  explicit FreeThreadedLock(std::mutex&) {}
#endif
};

class Form;  // triton/form.h

struct alignas(64) State {
  // What every call reads comes first.
  static constexpr int kForms = 4;
  Form* forms[kForms] = {};  // owned; the one that was used last comes first
  culaunch::Driver* table = nullptr;
  const DLPackExchangeAPI* fallback = nullptr;  // whose stream a call without arrays uses
  int device_type = 0;                          // of the driver's own memory
  int users = 0;                                // how many calls use what was learned now
  Guards guards;

  std::mutex mutex;
  Ref driver;                // the _core.Driver; null before the first call
  std::vector<int> targets;  // by device: 10 major + minor
  std::unique_ptr<Parameter[]> parameters;
  size_t count = 0;
  std::vector<size_t> runtime;    // which of them are passed,
  std::vector<size_t> constants;  // and which are constants
  Interner interner;
  WordTable<PyObject*> variants;  // owned
  bool is_tuned = false;
  std::vector<size_t> tuning_key;
  WordTable<std::shared_ptr<const TunedChoice>> choices;
  std::shared_ptr<const TunedChoice> last_choice;
  bool variants_have_constants = false;  // what a grid function is given depends on the variant
  unsigned misses = 0;                   // of the quick path
  std::vector<Form*> retired;            // owned: forms that were dropped while calls used them
  bool is_learning = false;              // a call is, which may run Python
  unsigned times_forgotten = 0;          // how often everything learned was dropped
  mutable unsigned traversal = 0;        // which one of the garbage collector's this is

  // The parameter of a name; -1 where there is none.
  int FindParameter(PyObject* name) const;
};

// While one of these lives, nothing that was learned is freed.
class StateUse {
 public:
  explicit StateUse(State& state) : state_(state) { ++state_.users; }
  StateUse(const StateUse&) = delete;
  StateUse& operator=(const StateUse&) = delete;
  ~StateUse() { --state_.users; }

 private:
  State& state_;
};

// A launcher made by dispatcher[grid], kept for the next time.
struct GridLauncher {
  PyObject* grid;      // owned
  PyObject* launcher;  // owned
};

struct DispatcherObject {
  PyObject_HEAD State* state;
  static constexpr int kCached = 4;
  GridLauncher cached[kCached];
  int next;  // which one is replaced next
};

enum class CallMode {
  kGuarded,  // the usual call: what the guards find is handled in Python
  kPlain,    // without looking at the guards
  kResolve,  // launch nothing: say what would be
};

// One call. `dims` is a fixed grid; null: `grid` is called with the arguments.
PyObject* CallDispatcher(DispatcherObject* self, PyObject* grid, const uint32_t* dims,
                         PyObject* const* args, size_t count, PyObject* keyword_names,
                         CallMode mode);

// What the arguments are in Triton's words: [(type, key), ...].
PyObject* DescribeArguments(DispatcherObject* self, PyObject* const* args, size_t count,
                            PyObject* keyword_names);

int AddDispatcherType(PyObject* module);

}  // namespace triton
