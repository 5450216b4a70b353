// Tensor descriptors made on the host.
#pragma once

#include <cstdint>

#include "python/python.h"

namespace triton {

// The maximum rank.
constexpr int kMostRank = 5;

// The parts of a descriptor that a launch passes.
struct TensorDescriptor {
  void* base = nullptr;
  int rank = 0;
  uint64_t shape[kMostRank] = {};
  uint64_t strides[kMostRank] = {};
  uint64_t fills_nan = 0;
  uint64_t rounds_to_tf32 = 0;
};

// The block that a descriptor is read in; the kernel is compiled for it.
struct DescriptorBlock {
  uint64_t sizes[kMostRank] = {};
  int rank = 0;
};

// Read a descriptor, except its base, which is an argument of its own. False with a Python error
// set.
bool ReadDescriptor(PyObject* object, TensorDescriptor* descriptor, DescriptorBlock* block);

}  // namespace triton
