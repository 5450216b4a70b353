// culaunch::ArrayArgument: an array as an argument of a kernel. It has an address and facts, which
// a launch compares with the parameter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "driver.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// The type of an array's elements, like DLPack's DLDataType; with 0 bits if it is not known.
struct ElementType {
  uint8_t code = 0;
  uint8_t bits = 0;
  uint16_t lanes = 1;

  constexpr bool operator==(const ElementType& other) const noexcept {
    return code == other.code && bits == other.bits && lanes == other.lanes;
  }
};

namespace detail {

// The facts about an array, in one word: a launch compares them with one operation.
struct ArrayFacts {
  static constexpr uint64_t kElement = 0xffffffff;
  static constexpr uint64_t kNull = uint64_t{1} << 32;   // elements, and no address
  static constexpr uint64_t kShort = uint64_t{1} << 33;  // fewer elements than are needed
  static constexpr uint64_t kConst = uint64_t{1} << 34;  // may not be written to
  static constexpr uint64_t kProblems = uint64_t{0xff} << 32;
  static constexpr int kTypeShift = 40;  // of the device, as DLPack numbers them
  static constexpr int kOrdinalShift = 48;
  static constexpr uint64_t kDevice = ~uint64_t{0} << kTypeShift;

  static constexpr uint64_t OfElement(ElementType type) noexcept {
    return type.code | uint64_t{type.bits} << 8 | uint64_t{type.lanes} << 16;
  }
  static constexpr uint64_t OfDevice(int type, int ordinal) noexcept {
    return static_cast<uint64_t>(type & 0xff) << kTypeShift |
           static_cast<uint64_t>(ordinal & 0xffff) << kOrdinalShift;
  }
};

// The facts that a parameter requires, where `mask` has a bit.
struct ArrayRule {
  uint64_t facts = 0;
  uint64_t mask = ArrayFacts::kNull | ArrayFacts::kShort | ArrayFacts::kDevice;
};

}  // namespace detail

// Made by culaunch::ffi::Data(tensor) and culaunch::ArrayOf(). It converts to the address, which
// says nothing more of the array.
class ArrayArgument {
 public:
  // device_type: DLPack's, 0 if the device is not known.
  ArrayArgument(const void* address, ElementType type, int device_type, int ordinal) noexcept
      : data(const_cast<void*>(address)),
        facts_(detail::ArrayFacts::OfElement(type) |
               detail::ArrayFacts::OfDevice(device_type, ordinal)),
        known_(detail::ArrayFacts::kProblems | (type.bits != 0 ? detail::ArrayFacts::kElement : 0) |
               (device_type != 0 ? detail::ArrayFacts::kDevice : 0)),
        element_bytes_((size_t{type.bits} * type.lanes + 7) / 8) {}

  operator void*() const noexcept { return data; }
  template <class Type>
  explicit operator Type*() const noexcept {
    return static_cast<Type*>(data);
  }

  ElementType type() const noexcept {
    ElementType type;
    type.code = static_cast<uint8_t>(facts_);
    type.bits = static_cast<uint8_t>(facts_ >> 8);
    type.lanes = static_cast<uint16_t>(facts_ >> 16);
    return type;
  }
  int device_type() const noexcept {
    return static_cast<int>(facts_ >> detail::ArrayFacts::kTypeShift & 0xff);
  }
  int ordinal() const noexcept {
    return static_cast<int16_t>(facts_ >> detail::ArrayFacts::kOrdinalShift);
  }
  // From the first one to the last; -1 if that is not known.
  int64_t elements() const noexcept { return elements_; }
  // How many of them the kernel needs.
  int64_t least() const noexcept { return least_; }
  // The bytes of all elements; 0 if their number is unknown.
  size_t bytes() const noexcept {
    return elements_ > 0 ? static_cast<size_t>(elements_) * element_bytes_ : 0;
  }

  void* data;

  // element_bytes: the size of one, if the type does not say it.
  void SetExtent(int64_t elements, int64_t least, size_t element_bytes = 0) noexcept {
    elements_ = elements;
    least_ = least;
    if (element_bytes != 0) element_bytes_ = element_bytes;
    if (elements < least) facts_ |= detail::ArrayFacts::kShort;
  }
  // The array has elements and no address: an error of the launch.
  void MarkNull() noexcept { facts_ |= detail::ArrayFacts::kNull; }
  void MarkConst() noexcept { facts_ |= detail::ArrayFacts::kConst; }
  uint64_t facts() const noexcept { return facts_; }
  uint64_t known() const noexcept { return known_; }

 private:
  uint64_t facts_;
  uint64_t known_;
  int64_t elements_ = -1;
  int64_t least_ = 0;
  size_t element_bytes_;
};

namespace detail {

// The element type of a C++ type, if it is one of the language's own numbers.
template <class Type>
constexpr ElementType ElementOf() noexcept {
  ElementType type;
  if constexpr (std::is_same_v<Type, char>) return type;  // bytes of anything
  if constexpr (std::is_floating_point_v<Type> && sizeof(Type) <= 8) {
    type.code = 2;
  } else if constexpr (std::is_same_v<Type, bool>) {
    type.code = 6;
  } else if constexpr (std::is_integral_v<Type>) {
    type.code = std::is_unsigned_v<Type> ? 1 : 0;
  } else {
    return type;
  }
  type.bits = static_cast<uint8_t>(8 * sizeof(Type));
  return type;
}

// Tell a driver that checks addresses of an array that the next launch gets. Arrays from ffi::Data
// were reported already.
inline void NoteArgument(const Driver& driver, const ArrayArgument& array) {
  if (array.elements() < 0) return;
  driver.note_array(array.data, array.bytes(),
                    (array.facts() & ArrayFacts::kConst) != 0 ? kNoteReadOnlyArray : kNoteArray);
}

// How many elements a tensor spans from its first one to its last; 0 if it has none.
template <class Tensor>
int64_t SpanOf(const Tensor& tensor) noexcept {
  int64_t last = 0;
  int64_t dense = 1;
  for (int i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] == 0) return 0;
    const int64_t stride = tensor.strides != nullptr ? tensor.strides[i] : dense;
    if (stride > 0) last += (tensor.shape[i] - 1) * stride;
    dense *= tensor.shape[i];
  }
  return last + 1;
}

}  // namespace detail

// An array of so many elements by its address, for a launch. `least`: how many the kernel needs.
template <class Type>
ArrayArgument ArrayOf(Type* pointer, size_t elements, size_t least = 0) {
  using Element = std::remove_cv_t<Type>;
  ArrayArgument array(pointer, detail::ElementOf<Element>(), 0, 0);
  array.SetExtent(static_cast<int64_t>(elements), static_cast<int64_t>(least), sizeof(Element));
  if (pointer == nullptr && elements != 0) array.MarkNull();
  if (std::is_const_v<Type>) array.MarkConst();
  return array;
}

// A DLTensor (dlpack.h), for a launch: its element type, device and extent come with it. `least`:
// how many elements the kernel needs.
template <class Tensor, class = decltype(std::declval<const Tensor&>().dtype.lanes)>
ArrayArgument ArrayOf(const Tensor& tensor, size_t least = 0) {
  ElementType type;
  type.code = static_cast<uint8_t>(tensor.dtype.code);
  type.bits = tensor.dtype.bits;
  type.lanes = tensor.dtype.lanes;
  ArrayArgument array(static_cast<const char*>(tensor.data) + tensor.byte_offset, type,
                      static_cast<int>(tensor.device.device_type), tensor.device.device_id);
  // Count the elements only on request.
  if (CULAUNCH_UNLIKELY((tensor.data == nullptr) | (least != 0)) ||
      CULAUNCH_UNLIKELY(Driver::ThatTakesNotes() != nullptr)) {
    array.SetExtent(detail::SpanOf(tensor), static_cast<int64_t>(least));
    if (tensor.data == nullptr && array.elements() != 0) array.MarkNull();
  }
  return array;
}

// An address of whatever it is: a launch compares nothing of it with the parameter.
inline void* Untyped(const volatile void* address) noexcept { return const_cast<void*>(address); }

CULAUNCH_NAMESPACE_END
