#include "driver/context_handles.h"

#include <culaunch/lock.h>

#include <atomic>
#include <map>
#include <new>
#include <tuple>

namespace {

struct Owner {
  CUcontext context;
  // A new context may reuse the address of a destroyed one. 0 if the driver has no ids.
  unsigned long long id;
};

struct Known {
  Owner owner;
  // The context of a handle was destroyed, and the driver reused the handle's number. This many
  // unreleased objects had the number before. They cannot be told apart, so the last one that asks
  // releases the current handle.
  int before;
};

using Key = std::tuple<culaunch::Driver*, HandleKind, uint64_t>;

struct KeptHandles {
  culaunch::Mutex mutex;
  std::map<Key, Known> handles;
  std::atomic<bool> is_used{false};  // very few programs have a context of their own
};

// Never destroyed, because objects are freed while the process ends.
KeptHandles& TheKeptHandles() {
  static KeptHandles& kept = *new KeptHandles;
  return kept;
}

// The current context; null if it is a primary context, or if no context is current.
Owner CurrentOwner(culaunch::Driver& driver, int ordinal) {
  CUcontext current = nullptr;
  CUcontext primary = nullptr;
  if (driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) return {};
  if (driver.PrimaryContext(ordinal, &primary) != CUDA_SUCCESS || current == primary) return {};
  Owner owner = {current, 0};
  if (driver.cuCtxGetId != nullptr) driver.cuCtxGetId(current, &owner.id);
  return owner;
}

}  // namespace

void NoteHandle(culaunch::Driver& driver, int ordinal, HandleKind kind, uint64_t handle) noexcept {
  KeptHandles& kept = TheKeptHandles();
  const Owner owner = CurrentOwner(driver, ordinal);
  if (owner.context == nullptr && !kept.is_used.load(std::memory_order_acquire)) return;
  const culaunch::LockGuard lock(kept.mutex);
  const Key key(&driver, kind, handle);
  const auto entry = kept.handles.find(key);
  if (entry != kept.handles.end()) {
    entry->second = {owner, entry->second.before + 1};
  } else if (owner.context != nullptr) {
    try {
      kept.handles.emplace(key, Known{owner, 0});
      kept.is_used.store(true, std::memory_order_release);
    } catch (const std::bad_alloc&) {
      // Without memory for the record, the handle is released as if its context outlived it.
    }
  }
}

bool MayRelease(culaunch::Driver& driver, HandleKind kind, uint64_t handle) noexcept {
  KeptHandles& kept = TheKeptHandles();
  if (!kept.is_used.load(std::memory_order_acquire)) return true;
  Owner owner = {};
  {
    const culaunch::LockGuard lock(kept.mutex);
    const auto entry = kept.handles.find(Key(&driver, kind, handle));
    if (entry == kept.handles.end()) return true;
    if (entry->second.before > 0) {
      --entry->second.before;
      return false;
    }
    owner = entry->second.owner;
    kept.handles.erase(entry);
  }
  if (owner.context == nullptr) return true;
  CUcontext current = nullptr;
  if (driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != owner.context) return false;
  unsigned long long id = 0;
  if (driver.cuCtxGetId != nullptr) driver.cuCtxGetId(current, &id);
  return id == owner.id;
}
