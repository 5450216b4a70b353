// What tensor_text.h declares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "../tensor_text.h"
#include "../text.h"
#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

CULAUNCH_COLD CULAUNCH_INLINE std::string Joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

CULAUNCH_COLD CULAUNCH_INLINE std::string NumberText(int64_t number) { return ToText(number); }

CULAUNCH_COLD CULAUNCH_INLINE std::string ShapeText(const int64_t* sizes, size_t count) {
  std::string text = "(";
  for (size_t i = 0; i < count; ++i) text += (i != 0 ? ", " : "") + ToText(sizes[i]);
  return text + (count == 1 ? ",)" : ")");
}

CULAUNCH_COLD CULAUNCH_INLINE std::string DeviceText(int type, int ordinal) {
  const char* kind = type == 1    ? "cpu"
                     : type == 2  ? "cuda"
                     : type == 3  ? "cuda_host"
                     : type == 13 ? "cuda_managed"
                                  : nullptr;
  return (kind != nullptr ? kind : "device type " + ToText(type)) + ":" + ToText(ordinal);
}

CULAUNCH_COLD CULAUNCH_INLINE std::string FunctionMetadata(const std::string& schema,
                                                           const std::string& parameters) {
  // Both texts are free of control characters.
  std::string text = "{\"type_schema\":\"";
  for (const char character : schema) {
    if (character == '"' || character == '\\') text += '\\';
    text += character;
  }
  text += "\",\"parameters\":[";
  const char* separator = "";
  for (size_t start = parameters.find_first_not_of(", "); start != std::string::npos;) {
    const size_t end = parameters.find_first_of(", ", start);
    text.append(separator).append("\"").append(parameters, start, end - start).append("\"");
    separator = ",";
    start = parameters.find_first_not_of(", ", end);
  }
  return text + "]}";
}

}  // namespace detail

CULAUNCH_NAMESPACE_END
