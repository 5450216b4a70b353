// The state that a function keeps between its calls.
#pragma once

#include <culaunch/driver.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "function/kinds/kind.h"
#include "function/kinds/watch.h"
#include "python/free_threaded_lock.h"
#include "python/python.h"

namespace function {

struct Parameter {
  Ref name;
  int kind;           // 0 positional only, 1 either, 2 keyword only
  Ref default_value;  // null if there is none
};

// The list of kinds only grows: a call walks it without a lock.
struct State {
  PyObject* self = nullptr;  // borrowed: the _core.Function
  Ref name;
  std::vector<Parameter> parameters;
  size_t positional = 0;  // how many of them may be positional
  std::atomic<Kind*> kinds{nullptr};
  std::atomic<Kind*> last{nullptr};                 // the kind of the last call
  std::atomic<culaunch::Driver*> driver{nullptr};   // of the last call
  std::atomic<int> device_type{0};                  // DLPack's number for that driver's memory
  std::atomic<Watch*> watch{nullptr};               // null: nothing is watched
  std::vector<std::unique_ptr<Watch>> all_watches;  // under the lock: a call may use one
  std::vector<Read> reads;                          // likewise: the names of the last watch
  std::mutex mutex;  // of the kinds' programs, in builds without the GIL

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  // An equal kind; null if there is none. A Python error may be set then.
  Kind* Find(const Kind& kind) const;

  // Install or replace the program of a kind, and watch the names that its body read, in addition
  // to those already watched.
  bool Add(std::unique_ptr<Kind> kind, ProgramObject* program, PyObject* entries);
  bool AddWatch(PyObject* entries);

  // Take a reference to a kind's program; null if it has none.
  Ref ProgramOf(Kind& kind);

  // Drop all programs, and stop watching.
  void Forget();
};

}  // namespace function
