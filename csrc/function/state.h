// The state that a function keeps between its calls.
#pragma once

#include <culaunch/driver.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "function/kind.h"
#include "function/watch.h"
#include "python/free_threaded_lock.h"
#include "python/python.h"

namespace function {

struct Parameter {
  Ref name;
  int kind;           // 0 positional only, 1 either, 2 keyword only
  Ref default_value;  // null: there is none
};

// The list of kinds only grows: a call walks it without a lock.
struct State {
  PyObject* self = nullptr;  // borrowed: the _core.Function
  Ref name;
  std::vector<Parameter> parameters;
  size_t positional = 0;  // how many of them may be given without their names
  std::atomic<Kind*> kinds{nullptr};
  std::atomic<Kind*> last{nullptr};                 // the kind of the last call
  std::atomic<culaunch::Driver*> driver{nullptr};   // of the last call
  std::atomic<int> device_type{0};                  // of DLPack: known to be that driver's memory
  std::atomic<Watch*> watch{nullptr};               // null: nothing is watched
  std::vector<std::unique_ptr<Watch>> all_watches;  // under the lock: a call may be in one
  std::vector<Read> reads;                          // likewise: what the last one watches
  std::mutex mutex;  // of the programs of the kinds, where there is no GIL

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  // A kind that is the same; null where there is none, perhaps with a Python error set.
  Kind* Find(const Kind& kind) const;

  // Install or replace the program of a kind, and watch what its body read besides what is watched
  // already.
  bool Add(std::unique_ptr<Kind> kind, ProgramObject* program, PyObject* entries);
  bool AddWatch(PyObject* entries);

  // Take a reference to a kind's program; null: it has none.
  Ref ProgramOf(Kind& kind);

  // Drop all programs, and what is watched.
  void Forget();
};

}  // namespace function
