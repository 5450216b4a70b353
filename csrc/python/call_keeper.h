// Keeps the calls that a thread makes while a graph records them, and their memory.
#pragma once

#include <atomic>

#include "python/python.h"

class CallKeeper {
 public:
  // Keep an object alive as long as the graph has the nodes recorded with it.
  virtual void Keep(Ref object) = 0;
  // The beginning and the end of a call that may launch something. `callable` is null if it failed.
  virtual void Begin() = 0;
  virtual void End(PyObject* callable, PyObject* const* args, size_t count, PyObject* names) = 0;
  // One launch was recorded.
  virtual void NoteLaunch(PyObject* callable, PyObject* const* args, size_t count) = 0;

  // The keeper of this thread, or null. It costs one load while no thread records.
  static CallKeeper* Current() { return CULAUNCH_UNLIKELY(AreNoted()) ? Place() : nullptr; }

  // Whether some thread records, or all launches are watched.
  static bool AreNoted() { return Count().load(std::memory_order_relaxed) != 0; }

  // Receives the arguments of each launch that no keeper takes; `callable` is null for a Triton
  // kernel. There is one watcher at a time;
  // null removes it.
  using Watcher = void (*)(PyObject* callable, PyObject* const* args, size_t count);
  static void Watch(Watcher watcher) {
    const Watcher before = Watching().exchange(watcher);
    Count().fetch_add(static_cast<int>(watcher != nullptr) - static_cast<int>(before != nullptr),
                      std::memory_order_relaxed);
  }
  CULAUNCH_RARE static void Note(PyObject* callable, PyObject* const* args, size_t count) {
    if (CallKeeper* keeper = Place()) return keeper->NoteLaunch(callable, args, count);
    if (const Watcher watcher = Watching().load()) watcher(callable, args, count);
  }
  // The same for a Triton kernel, whose launches the keeper knows.
  CULAUNCH_RARE static void NoteTriton(PyObject* const* args, size_t count) {
    const Watcher watcher = Watching().load();
    if (watcher != nullptr && Place() == nullptr) watcher(nullptr, args, count);
  }

 protected:
  ~CallKeeper() = default;
  static CallKeeper* Enter(CallKeeper* keeper) {
    Count().fetch_add(1, std::memory_order_relaxed);
    return std::exchange(Place(), keeper);
  }
  static void Leave(CallKeeper* before) {
    Count().fetch_sub(1, std::memory_order_relaxed);
    Place() = before;
  }

 private:
  static std::atomic<int>& Count() {
    static std::atomic<int> count{0};
    return count;
  }
  static std::atomic<Watcher>& Watching() {
    static std::atomic<Watcher> watcher{nullptr};
    return watcher;
  }
  static CallKeeper*& Place() {
    static thread_local CallKeeper* current = nullptr;
    return current;
  }
};

// A call that may be recorded as one unit.
class KeptCall {
 public:
  KeptCall(PyObject* callable, PyObject* const* args, size_t count, PyObject* names)
      : keeper_(CallKeeper::Current()) {
    if (CULAUNCH_UNLIKELY(keeper_ != nullptr)) Begin(callable, args, count, names);
  }
  KeptCall(const KeptCall&) = delete;
  KeptCall& operator=(const KeptCall&) = delete;
  ~KeptCall() {
    if (CULAUNCH_UNLIKELY(keeper_ != nullptr)) End();
  }

 private:
  CULAUNCH_RARE void Begin(PyObject* callable, PyObject* const* args, size_t count,
                           PyObject* names) {
    callable_ = callable;
    args_ = args;
    count_ = count;
    names_ = names;
    keeper_->Begin();
  }
  CULAUNCH_RARE void End() {
    const bool has_failed = PyErr_Occurred() != nullptr;
    keeper_->End(has_failed ? nullptr : callable_, args_, count_, names_);
  }

  CallKeeper* keeper_;
  PyObject* callable_;
  PyObject* const* args_;
  size_t count_;
  PyObject* names_;
};
