#include "function/kinds/state.h"

#include <utility>

namespace function {

State::~State() {
  for (Kind* kind = kinds.load(); kind != nullptr;) {
    Kind* next = kind->next;
    Py_XDECREF(reinterpret_cast<PyObject*>(kind->program));
    delete kind;
    kind = next;
  }
}

Kind* State::Find(const Kind& kind) const {
  for (Kind* it = kinds.load(std::memory_order_acquire); it != nullptr; it = it->next) {
    const int is_same = it->Equals(kind);
    if (is_same < 0) return nullptr;
    if (is_same > 0) return it;
  }
  return nullptr;
}

bool State::AddWatch(PyObject* entries) {
  if (PyTuple_Size(entries) == 0) return true;
  std::unique_ptr<Watch> made;
  std::vector<Read> all;
  {
    const FreeThreadedLock lock(mutex);
    for (const Read& one : reads) {
      all.push_back({Ref::Borrow(one.where.get()), Ref::Borrow(one.name.get()),
                     Ref::Borrow(one.value.get())});
    }
  }
  if (!AddReads(entries, &all)) return false;
  made = Watch::Make(all);
  if (made == nullptr) return false;
  Watch* old;
  {
    const FreeThreadedLock lock(mutex);
    std::swap(reads, all);
    old = watch.exchange(made.get(), std::memory_order_acq_rel);
    all_watches.push_back(std::move(made));
  }
  if (old != nullptr) old->Retire();
  return true;
}

bool State::Add(std::unique_ptr<Kind> kind, ProgramObject* program, PyObject* entries) {
  if (!kind->Takes(*program->program) || !AddWatch(entries)) return false;
  Kind* known = Find(*kind);
  if (known == nullptr && PyErr_Occurred() != nullptr) return false;
  Py_INCREF(reinterpret_cast<PyObject*>(program));
  if (known == nullptr) {
    // Another thread may add the same kind meanwhile. Then the newer one is found.
    known = kind.release();
    known->program = program;
    known->next = kinds.load(std::memory_order_relaxed);
    while (!kinds.compare_exchange_weak(known->next, known, std::memory_order_acq_rel)) {
    }
    return true;
  }
  ProgramObject* old;
  {
    const FreeThreadedLock lock(mutex);
    old = std::exchange(known->program, program);
  }
  Py_XDECREF(reinterpret_cast<PyObject*>(old));
  return true;
}

Ref State::ProgramOf(Kind& kind) {
  const FreeThreadedLock lock(mutex);
  return Ref::Borrow(reinterpret_cast<PyObject*>(kind.program));
}

void State::Forget() {
  std::vector<Read> old_reads;
  Watch* old_watch;
  {
    const FreeThreadedLock lock(mutex);
    old_watch = watch.exchange(nullptr, std::memory_order_acq_rel);
    std::swap(reads, old_reads);
  }
  if (old_watch != nullptr) old_watch->Retire();
  for (Kind* it = kinds.load(std::memory_order_acquire); it != nullptr; it = it->next) {
    ProgramObject* old;
    {
      const FreeThreadedLock lock(mutex);
      old = std::exchange(it->program, nullptr);
    }
    Py_XDECREF(reinterpret_cast<PyObject*>(old));
  }
}

}  // namespace function
