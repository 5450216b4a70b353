// A kernel's name as people write it.
#pragma once

#include <cstddef>
#include <string>

#include "version.h"

#if defined(__GNUG__)
#include <cxxabi.h>

#include <cstdlib>
#endif

CULAUNCH_NAMESPACE_BEGIN

// The demangled name; the name itself where it is not a mangled one. The C++ library also takes
// encodings of types, so that a kernel `f` would be a "float"; and long names take much stack.
inline std::string Demangle(const std::string& name) {
  constexpr size_t kLongest = 1024;  // what GNU's demangler takes
  if (name.compare(0, 2, "_Z") != 0 || name.size() > kLongest) return name;
#if defined(__GNUG__)
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  if (status == 0 && text != nullptr) {
    std::string demangled(text);
    std::free(text);
    return demangled;
  }
#endif
  return name;
}

CULAUNCH_NAMESPACE_END
