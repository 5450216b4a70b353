// The variant that a quick call of Triton finds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "triton/variants/tuning.h"
#include "triton/variants/variant.h"

namespace triton {

// A variant selected by calls of a form.
struct QuickVariant {
  static constexpr size_t kMost = 64;                  // arguments, and parameters
  static constexpr size_t kMostWords = 2 * kMost + 1;  // of a key

  QuickVariant() = default;
  QuickVariant(const QuickVariant&) = delete;
  QuickVariant& operator=(const QuickVariant&) = delete;
  ~QuickVariant() { Py_XDECREF(reinterpret_cast<PyObject*>(variant)); }

  // Take over a variant, and find the parameter of each leaf. False if the variant has parameters
  // other than the `leaf_count` leaves and null pointers for unused scratch memory.
  bool Set(VariantObject* variant, std::shared_ptr<const TunedChoice> choice, size_t leaf_count);

  // For the garbage collector.
  int Traverse(visitproc visit, void* arg, unsigned traversal) const;

  VariantState* state = nullptr;
  VariantObject* variant = nullptr;           // owned
  std::shared_ptr<const TunedChoice> choice;  // of an autotuner; null if there is none
  uint8_t nulls[2] = {kMost, kMost};          // the parameters that get null pointers, and
  uint8_t slots[kMost];                       // of each leaf; kMost: none
  uint64_t words[kMostWords];
};

}  // namespace triton
