// The keys of the cache: everything that an image depends on, and nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../../version.h"
#include "../base/json_text.h"
#include "../base/sha256.h"
#include "../files/includes.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// Changes whenever the same key would mean a different image, or a different key the same image.
constexpr int64_t kKeySchema = 1;
// Changes whenever the same headers would have another digest.
constexpr int64_t kIncludesSchema = 1;

// The inputs of one image.
struct KeyParts {
  std::string backend;             // "nvrtc"
  std::string identity;            // pins the build of the compiler
  std::vector<std::string> archs;  // with their suffixes, in the fixed order
  std::string source_digest;       // of the source as the caller gave it
  std::string name;                // the source's name: it is in __FILE__, and in messages
  std::string includes_digest;
  std::vector<std::string> flags;
  std::vector<std::string> names;  // name expressions
  bool lto = false;
  // The source's directory and those with headers, where the image says where its files are.
  std::optional<std::vector<std::optional<std::string>>> dirs;
};

// 64 hexadecimal digits.
inline std::string CacheKey(KeyParts parts) {
  std::sort(parts.names.begin(), parts.names.end());
  JsonText json;
  json.Open('[').Integer(kKeySchema).String(parts.backend).String(parts.identity);
  json.Strings(parts.archs).String(parts.source_digest).String(parts.name);
  json.String(parts.includes_digest).Strings(parts.flags).Strings(parts.names).Flag(parts.lto);
  if (parts.dirs) {
    json.Open('[');
    for (const std::optional<std::string>& one : *parts.dirs) {
      if (one) {
        json.String(*one);
      } else {
        json.Null();
      }
    }
    json.Close(']');
  } else {
    json.Null();
  }
  return HexDigest(json.Close(']').text());
}

// A name for a source and the places to search for its headers: the note about its headers is
// stored under it.
inline std::string IncludesKey(std::string_view source_digest, std::string_view path,
                               std::string_view headers_digest, const Search& search,
                               const std::vector<std::string>& system) {
  std::vector<std::string> own(search.own.begin(), search.own.end());
  std::sort(own.begin(), own.end());
  JsonText json;
  json.Open('[').Integer(kIncludesSchema).String(source_digest).String(path);
  json.String(headers_digest).Strings(search.dirs).Strings(search.quoted_dirs).Strings(system);
  json.Strings(own).String(search.identity).String(search.working).Strings(search.forced);
  return HexDigest(json.String(search.defines).Close(']').text());
}

// A digest of the names and texts of all in-memory headers.
inline std::string HeadersDigest(const std::map<std::string, std::string>& headers) {
  JsonText json;
  json.Open('[');
  for (const auto& [name, text] : headers) json.Open('[').String(name).String(text).Close(']');
  return HexDigest(json.Close(']').text());
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
