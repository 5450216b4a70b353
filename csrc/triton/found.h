// The variant that a quick call of Triton finds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "triton/tuning.h"
#include "triton/variant.h"

namespace triton {

// A variant that calls of a form led to.
struct Found {
  static constexpr size_t kMost = 64;                  // arguments, and parameters
  static constexpr size_t kMostWords = 2 * kMost + 1;  // of a key

  Found() = default;
  Found(const Found&) = delete;
  Found& operator=(const Found&) = delete;
  ~Found() { Py_XDECREF(reinterpret_cast<PyObject*>(variant)); }

  // Take a variant over, and find the parameter of each leaf. False where it has others than those
  // of `leaf_count` leaves and null pointers for scratch memory that it does not need.
  bool Set(VariantObject* variant, std::shared_ptr<const TunedChoice> choice, size_t leaf_count);

  // For the garbage collector.
  int Traverse(visitproc visit, void* arg, unsigned traversal) const;

  VariantState* state = nullptr;
  VariantObject* variant = nullptr;           // owned
  std::shared_ptr<const TunedChoice> choice;  // of an autotuner; null: there is none
  uint8_t nulls[2] = {kMost, kMost};          // the parameters that get null pointers, and
  uint8_t slots[kMost];                       // of each leaf; kMost: none
  uint64_t words[kMostWords];
};

}  // namespace triton
