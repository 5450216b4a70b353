// The arguments of one call of a Triton kernel, by parameter.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "python/python.h"
#include "python/small_buffer.h"

namespace triton {

// A keyword that does not name a parameter: its name and value, borrowed.
using Option = std::pair<PyObject*, PyObject*>;

// Borrowed references; null if nothing was given.
class Bound {
 public:
  explicit Bound(size_t count) : count_(count), values_(count) {
    std::fill(values_.data(), values_.data() + count, nullptr);
  }

  PyObject*& operator[](size_t i) { return values_[i]; }
  size_t count() const { return count_; }

  std::vector<Option> options;  // in the order given

 private:
  size_t count_;
  SmallBuffer<PyObject*, 96> values_;
};

}  // namespace triton
