// Tensor descriptors that are made on the host.
#pragma once

#include <cstdint>

#include "python/python.h"

namespace triton {

// The most dimensions that one has.
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

// The block that one is read in, which the kernel is compiled for.
struct DescriptorBlock {
  uint64_t sizes[kMostRank] = {};
  int rank = 0;
};

// Read all of one but its base, which is an argument of its own. False with a Python error set.
bool ReadDescriptor(PyObject* object, TensorDescriptor* descriptor, DescriptorBlock* block);

}  // namespace triton
