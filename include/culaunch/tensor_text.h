// Tensors and exported functions in messages and metadata. culaunch/tvm_ffi.h includes this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

std::string Joined(std::initializer_list<std::string_view> parts);
std::string NumberText(int64_t number);
// "(2, 3)".
std::string ShapeText(const int64_t* sizes, size_t count);
// "cuda:1", for a device as DLPack numbers it.
std::string DeviceText(int type, int ordinal);
// The JSON that TVM-FFI keeps of an exported function. `parameters` has their names: "y, x, n".
std::string FunctionMetadata(const std::string& schema, const std::string& parameters);

}  // namespace detail

CULAUNCH_NAMESPACE_END

#if CULAUNCH_HEADER_ONLY
#include "impl/tensor_text.h"
#endif
