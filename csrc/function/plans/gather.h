// The parts of an array argument that a program needs.
#pragma once

#include "arguments/views/array_view.h"
#include "function/program/program.h"

namespace function {

// ADDRESS is taken modulo this, the largest alignment that an allocator guarantees.
inline constexpr Word kAddresses = 256;

inline int64_t StrideOf(const int64_t* shape, const int64_t* strides, int ndim, int axis) {
  if (strides != nullptr) return strides[axis];
  int64_t dense = 1;
  for (int i = ndim - 1; i > axis; --i) dense *= shape[i];
  return dense;
}

// The property of an array that an input reads.
inline Word InputOf(const Input& input, const void* data, const int64_t* shape,
                    const int64_t* strides, int ndim) {
  if (input.kind == Input::kDim) return shape[input.axis];
  if (input.kind == Input::kContiguous) return IsContiguous(shape, strides, ndim) ? 1 : 0;
  if (input.kind == Input::kStride) return StrideOf(shape, strides, ndim, input.axis);
  const auto address = reinterpret_cast<uintptr_t>(data);
  if (input.kind == Input::kPlace) return static_cast<Word>(address);
  return static_cast<Word>(address % static_cast<uintptr_t>(kAddresses));
}

// Put the inputs that come from an array in their places.
inline void GatherArray(const Program& program, size_t array, const char* data,
                        const int64_t* shape, const int64_t* strides, int ndim, Word* inputs) {
  const ArgumentArray& one = program.of_arrays[array];
  for (uint32_t i = one.first_input; i < one.end_input; ++i) {
    inputs[i] = InputOf(program.inputs[i], data, shape, strides, ndim);
  }
}

}  // namespace function
