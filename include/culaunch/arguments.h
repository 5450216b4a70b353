// culaunch::Arguments: a list of arguments that is made while the program runs,
// for engines whose kernels' signatures are data.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "argument.h"
#include "array_argument.h"
#include "error.h"
#include "kernel.h"
#include "text.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// Holds copies of the arguments. One list may be launched many times, from one
// thread at a time; Clear() keeps its memory for the next.
class Arguments {
 public:
  // Any trivially copyable value: numbers, pointers, nullptr, structures,
  // std::array, half types.
  template <class Type>
  Arguments& Add(const Type& argument) {
    detail::RequireArgument<Type>();
    Append(detail::AddressOfArgument(argument), detail::TypeOfArgument<Type>(),
           detail::ArrayIn(argument));
    return *this;
  }

  // Several at once.
  template <class... Types>
  Arguments& AddAll(const Types&... arguments) {
    (Add(arguments), ...);
    return *this;
  }

  // The elements of a container as an array of kSize, by value, as kernels take
  // shapes and strides; the rest is zeros.
  template <class Element, size_t kSize, class Container>
  Arguments& AddArray(const Container& elements) {
    static_assert(std::is_trivially_copyable_v<Element>, "an array's elements are passed as bytes");
    struct Array {
      Element elements[kSize];
    } array = {};
    size_t count = 0;
    for (const auto& element : elements) {
      if (count == kSize) {
        detail::Raise(Error("an array of " + detail::ToText(kSize) +
                            " has no room for all the elements: " + "compile the kernel for more"));
      }
      array.elements[count++] = static_cast<Element>(element);
    }
    return Add(array);
  }

  // Bytes whose type is not known here: a structure that something else has
  // packed.
  Arguments& AddBytes(const void* bytes, size_t size) {
    Append(bytes, {size, ArgumentKind::kStructure, &BytesName});
    return *this;
  }

  void Clear() noexcept {
    bytes_.clear();
    offsets_.clear();
    types_.clear();
    arrays_.clear();
  }

  size_t size() const noexcept { return types_.size(); }
  const ArgumentType* types() const noexcept { return types_.data(); }

  // Check them for a launch of a kernel on a stream.
  Status CheckFor(const Kernel& kernel, const Stream& stream) const;

  // Tell a driver that checks addresses of the arrays among them.
  void NoteFor(const Driver& driver) const {
    if (driver.note_array == nullptr) return;
    for (const auto& [index, array] : arrays_) detail::NoteArgument(driver, array);
  }

  // A pointer to each argument, as cuLaunchKernelEx takes them. Good until the
  // list changes.
  void** pointers() const {
    pointers_.clear();
    for (const size_t offset : offsets_) {
      pointers_.push_back(const_cast<unsigned char*>(bytes_.data()) + offset);
    }
    pointers_.push_back(nullptr);
    return pointers_.data();
  }

 private:
  static const char* BytesName() { return "Type = bytes]"; }

  void Append(const void* bytes, const ArgumentType& type, const ArrayArgument* array = nullptr) {
    if (array != nullptr) arrays_.emplace_back(types_.size(), *array);
    constexpr size_t kAlignment = alignof(std::max_align_t);
    const size_t offset = (bytes_.size() + kAlignment - 1) / kAlignment * kAlignment;
    bytes_.resize(offset + type.size);
    if (type.size != 0) std::memcpy(bytes_.data() + offset, bytes, type.size);
    offsets_.push_back(offset);
    types_.push_back(type);
  }

  std::vector<unsigned char> bytes_;
  std::vector<size_t> offsets_;
  std::vector<ArgumentType> types_;
  std::vector<std::pair<size_t, ArrayArgument>> arrays_;
  mutable std::vector<void*> pointers_;
};

inline void Kernel::Launch(const LaunchConfig& config, const culaunch::Arguments& arguments) const {
  TryLaunch(config, arguments).OrThrow();
}

CULAUNCH_NAMESPACE_END

#if CULAUNCH_HEADER_ONLY
#include "impl/arguments.h"
#endif
