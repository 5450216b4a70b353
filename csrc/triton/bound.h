// The arguments of one call of a Triton kernel, by parameter.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "python/python.h"

namespace triton {

// A keyword that is no parameter's: its name and value, borrowed.
using Option = std::pair<PyObject*, PyObject*>;

// Borrowed references; null where nothing was given.
class Bound {
 public:
  explicit Bound(size_t count) : count_(count) {
    if (count > kInline) {
      large_ = std::make_unique<PyObject*[]>(count);
      values_ = large_.get();
    }
    std::fill(values_, values_ + count, nullptr);
  }

  PyObject*& operator[](size_t i) { return values_[i]; }
  size_t count() const { return count_; }

  std::vector<Option> options;  // in the order given

 private:
  static constexpr size_t kInline = 96;
  size_t count_;
  PyObject* inline_[kInline];
  PyObject** values_ = inline_;
  std::unique_ptr<PyObject*[]> large_;
};

}  // namespace triton
