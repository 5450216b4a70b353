#include "driver/made_things.h"

#include <culaunch/lock.h>

#include <atomic>
#include <map>
#include <new>
#include <tuple>

namespace {

struct Owner {
  CUcontext context;
  // Another context may have the address of one that was destroyed. 0 where the driver has no ids.
  unsigned long long id;
};

struct Known {
  Owner owner;
  // The context of a thing is gone, and the driver reused its number. This many unreleased objects
  // had the number before. They cannot be told apart, so the last one that asks releases the
  // current thing.
  int before;
};

using Key = std::tuple<culaunch::Driver*, Thing, uint64_t>;

struct Made {
  culaunch::Mutex mutex;
  std::map<Key, Known> things;
  std::atomic<bool> is_used{false};  // nearly no program has a context of its own
};

// Never destroyed: objects go while the process ends.
Made& TheMade() {
  static Made& made = *new Made;
  return made;
}

// The current context; a null one where it is a primary one, or there is none.
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

void NoteMade(culaunch::Driver& driver, int ordinal, Thing thing, uint64_t handle) noexcept {
  Made& made = TheMade();
  const Owner owner = CurrentOwner(driver, ordinal);
  if (owner.context == nullptr && !made.is_used.load(std::memory_order_acquire)) return;
  const culaunch::LockGuard lock(made.mutex);
  const Key key(&driver, thing, handle);
  const auto found = made.things.find(key);
  if (found != made.things.end()) {
    found->second = {owner, found->second.before + 1};
  } else if (owner.context != nullptr) {
    try {
      made.things.emplace(key, Known{owner, 0});
      made.is_used.store(true, std::memory_order_release);
    } catch (const std::bad_alloc&) {
      // Then it is released as if its context could not go: so little memory is left anyway.
    }
  }
}

bool MayRelease(culaunch::Driver& driver, Thing thing, uint64_t handle) noexcept {
  Made& made = TheMade();
  if (!made.is_used.load(std::memory_order_acquire)) return true;
  Owner owner = {};
  {
    const culaunch::LockGuard lock(made.mutex);
    const auto found = made.things.find(Key(&driver, thing, handle));
    if (found == made.things.end()) return true;
    if (found->second.before > 0) {
      --found->second.before;
      return false;
    }
    owner = found->second.owner;
    made.things.erase(found);
  }
  if (owner.context == nullptr) return true;
  CUcontext current = nullptr;
  if (driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != owner.context) return false;
  unsigned long long id = 0;
  if (driver.cuCtxGetId != nullptr) driver.cuCtxGetId(current, &id);
  return id == owner.id;
}
