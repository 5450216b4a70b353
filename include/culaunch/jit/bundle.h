// Device headers that are part of the program, for a Jit to compile with.
#pragma once

#include <cstddef>

#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

// Headers by the names that #include uses, as culaunch_add_headers() embeds them.
struct HeaderBundle {
  const char* const* names;
  const char* const* texts;
  const unsigned long long* sizes;  // of the texts, in bytes
  size_t count;
};

CULAUNCH_NAMESPACE_END

// Declare the headers that culaunch_add_headers(target NAME bundle ...) puts into this program or
// library. Outside functions; any number of files may declare them.
#define CULAUNCH_EMBED_HEADERS(bundle)                                              \
  extern "C" {                                                                      \
  CULAUNCH_HIDDEN extern const char* const culaunch_header_names_##bundle[];        \
  CULAUNCH_HIDDEN extern const char* const culaunch_header_texts_##bundle[];        \
  CULAUNCH_HIDDEN extern const unsigned long long culaunch_header_sizes_##bundle[]; \
  CULAUNCH_HIDDEN extern const unsigned long long culaunch_header_count_##bundle;   \
  }                                                                                 \
  static_assert(true, "a semicolon ends the macro")

// The culaunch::HeaderBundle of that name.
#define CULAUNCH_HEADERS(bundle)                                                            \
  (::culaunch::HeaderBundle{culaunch_header_names_##bundle, culaunch_header_texts_##bundle, \
                            culaunch_header_sizes_##bundle,                                 \
                            static_cast<size_t>(culaunch_header_count_##bundle)})
