// Demangling of kernel names.
#pragma once

#include <cstddef>
#include <string>

#include "version.h"

#if defined(__GNUG__) && !defined(CULAUNCH_HAS_DEMANGLER)
#include <cxxabi.h>

#include <cstdlib>
#endif

CULAUNCH_NAMESPACE_BEGIN

#if defined(CULAUNCH_HAS_DEMANGLER)

// culaunch's Python extension is built with this macro and defines the function: its messages name
// kernels as Python does. Programs without Python have the C++ library's demangler, below.
std::string Demangle(const std::string& name);

#else

namespace detail {

// Whether a mangled name may spell more than it is worth. Its references (S_, S1_, T_) each repeat
// something from before, and three of them triple it at most.
inline bool SpellsTooMuch(const std::string& name) {
  constexpr size_t kMost = size_t{1} << 24;
  size_t length = name.size();
  int references = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] != 'S' && name[i] != 'T') continue;
    size_t end = i + 1;
    while (end < name.size() &&
           ((name[end] >= '0' && name[end] <= '9') || (name[end] >= 'A' && name[end] <= 'Z'))) {
      ++end;
    }
    if (end == name.size() || name[end] != '_' || ++references % 3 != 0) continue;
    length *= 3;
    if (length > kMost) return true;
  }
  return false;
}

}  // namespace detail

// The demangled name, or the name itself if it is not mangled. The C++ library also accepts
// encodings of types: a kernel `f` would be a "float". Long names use much stack, and repetitive
// ones much memory.
inline std::string Demangle(const std::string& name) {
  constexpr size_t kLongest = 1024;  // the limit of GNU's demangler
  if (name.compare(0, 2, "_Z") != 0 || name.size() > kLongest || detail::SpellsTooMuch(name)) {
    return name;
  }
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

#endif

CULAUNCH_NAMESPACE_END
