// culaunch::ByName: values that are found by a name.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// One map of names to numbers, and a list: the map is the same type for all values, and a compiler
// reads it once. Values move when others come.
template <class Value>
class ByName {
 public:
  Value* Find(const std::string& name) noexcept {
    const auto found = numbers_.find(name);
    return found != numbers_.end() ? &values_[found->second] : nullptr;
  }
  const Value* Find(const std::string& name) const noexcept {
    return const_cast<ByName*>(this)->Find(name);
  }

  // Add a value, or replace the value of this name.
  Value& Set(const std::string& name, Value value) {
    if (Value* known = Find(name)) return *known = std::move(value);
    values_.push_back(std::move(value));
    numbers_.emplace(name, values_.size() - 1);
    return values_.back();
  }

  size_t size() const noexcept { return values_.size(); }
  // All names, sorted, to their values' places in values().
  const std::map<std::string, size_t>& numbers() const noexcept { return numbers_; }
  const std::vector<Value>& values() const noexcept { return values_; }

 private:
  std::map<std::string, size_t> numbers_;
  std::vector<Value> values_;
};

CULAUNCH_NAMESPACE_END
