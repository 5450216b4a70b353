// The C++ values that may be arguments of a kernel, and the known facts about their types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "array_argument.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

enum class ArgumentKind : uint8_t {
  kPointer,
  kAddress,  // an unsigned integer as large as a pointer: CUdeviceptr
  kInteger,  // bool, characters and enumerations too
  kFloat,
  kStructure,
};

// The facts that a launch compares with a parameter.
struct ArgumentType {
  size_t size;
  ArgumentKind kind;
  const char* (*name)();  // see ArgumentName
};

namespace detail {

template <class Type, class = void>
struct IsTensorLike : std::false_type {};
template <class Type>
struct IsTensorLike<Type, std::void_t<decltype(std::declval<const Type&>().data_ptr())>>
    : std::true_type {};

template <class Type>
constexpr bool kIsArray = std::is_same_v<Type, ArrayArgument>;

// A kernel gets the bytes of an argument and nothing else of it.
template <class Type>
constexpr void RequireArgument() {
  static_assert(!IsTensorLike<Type>::value,
                "a tensor cannot be an argument of a kernel: pass the address of its elements, "
                "culaunch::ffi::Data(tensor) or tensor.data_ptr()");
  static_assert(
      !std::is_array_v<Type>,
      "an array of the host cannot be an argument of a kernel: pass the address of device "
      "memory, or a struct that holds the array, by value");
  static_assert(
      IsTensorLike<Type>::value || std::is_trivially_copyable_v<Type>,
      "an argument of a kernel must be trivially copyable, because the kernel gets its bytes. Pass "
      "culaunch::ffi::Data(tensor) or tensor.data_ptr() of a tensor, .get() of a smart pointer, "
      ".data() of a container of device memory");
}

template <class Type>
constexpr ArgumentKind KindOfArgument() {
  if constexpr (kIsArray<Type>) {
    return ArgumentKind::kPointer;
  } else if constexpr (std::is_pointer_v<Type> || std::is_null_pointer_v<Type>) {
    return ArgumentKind::kPointer;
  } else if constexpr (std::is_floating_point_v<Type>) {
    return ArgumentKind::kFloat;
  } else if constexpr (std::is_integral_v<Type>) {
    return std::is_unsigned_v<Type> && sizeof(Type) == sizeof(void*) ? ArgumentKind::kAddress
                                                                     : ArgumentKind::kInteger;
  } else {
    return std::is_enum_v<Type> ? ArgumentKind::kInteger : ArgumentKind::kStructure;
  }
}

// The compiler's own words, with the type in them.
template <class Type>
const char* ArgumentWords() {
#if defined(__GNUC__)
  return __PRETTY_FUNCTION__;  // "... [with Type = float]", "... [Type = float]"
#else
  return "";
#endif
}

template <class Type>
constexpr ArgumentType TypeOfArgument() {
  return {kIsArray<Type> ? sizeof(void*) : sizeof(Type), KindOfArgument<Type>(),
          &ArgumentWords<Type>};
}

// Where an argument's bytes are. Those of nullptr are nowhere said to be zero.
template <class Type>
void* AddressOfArgument(const Type& argument) noexcept {
  if constexpr (kIsArray<Type>) {
    return const_cast<void*>(static_cast<const void*>(&argument.data));
  } else if constexpr (std::is_null_pointer_v<Type>) {
    static const void* const null = nullptr;
    return const_cast<void*>(static_cast<const void*>(&null));
  } else {
    return const_cast<void*>(static_cast<const void*>(std::addressof(argument)));
  }
}

template <class Type>
const ArrayArgument* ArrayIn(const Type& argument) noexcept {
  if constexpr (kIsArray<Type>) {
    return &argument;
  } else {
    static_cast<void>(argument);
    return nullptr;
  }
}

template <class Type>
void NoteIfArray(const Driver& driver, const Type& argument) {
  if constexpr (kIsArray<Type>) {
    NoteArgument(driver, argument);
  } else {
    static_cast<void>(driver);
    static_cast<void>(argument);
  }
}

// The device of an array; -1 for other arguments, and if it is not known.
template <class Type>
int OrdinalOf(const Type& argument) noexcept {
  if constexpr (kIsArray<Type>) {
    return (argument.known() & ArrayFacts::kDevice) != 0 ? argument.ordinal() : -1;
  } else {
    static_cast<void>(argument);
    return -1;
  }
}

// The facts about an array that its parameter does not allow; `place` is where it should be.
template <class Type>
uint64_t Differences(const Type& argument, const ArrayRule& rule, uint64_t place) noexcept {
  if constexpr (kIsArray<Type>) {
    return (argument.facts() ^ (rule.facts | place)) & rule.mask & argument.known();
  } else {
    static_cast<void>(argument);
    static_cast<void>(rule);
    static_cast<void>(place);
    return 0;
  }
}

}  // namespace detail

// An argument's type as its source spells it, for messages.
inline std::string ArgumentName(const ArgumentType& type) {
  const std::string words = type.name();
  const size_t start = words.find("Type = ");
  const size_t end = words.find_last_of(']');
  if (start == std::string::npos || end == std::string::npos) return "another type";
  return words.substr(start + 7, end - start - 7);
}

CULAUNCH_NAMESPACE_END
