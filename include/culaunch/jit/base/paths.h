// Paths as text, as Python's os.path has them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

inline bool IsAbsolute(std::string_view path) { return !path.empty() && path.front() == '/'; }

inline std::string JoinPath(std::string_view first, std::string_view second) {
  if (IsAbsolute(second) || first.empty()) return std::string(second);
  std::string joined(first);
  if (joined.back() != '/') joined += '/';
  return joined.append(second);
}

// The directory of a path and the name in it.
inline std::pair<std::string, std::string> SplitPath(std::string_view path) {
  const size_t slash = path.rfind('/');
  const size_t start = slash == std::string_view::npos ? 0 : slash + 1;
  std::string_view head = path.substr(0, start);
  if (head.find_first_not_of('/') != std::string_view::npos) {
    while (head.back() == '/') head.remove_suffix(1);
  }
  return {std::string(head), std::string(path.substr(start))};
}

inline std::string DirectoryOf(std::string_view path) { return SplitPath(path).first; }
inline std::string BaseName(std::string_view path) { return SplitPath(path).second; }

// The path without ".", ".." and doubled slashes.
inline std::string NormalPath(std::string_view path) {
  if (path.empty()) return ".";
  size_t slashes = 0;
  while (slashes < path.size() && path[slashes] == '/') ++slashes;
  if (slashes > 2) slashes = 1;  // two mean something of their own
  std::vector<std::string_view> parts;
  for (size_t start = 0; start <= path.size();) {
    size_t end = path.find('/', start);
    if (end == std::string_view::npos) end = path.size();
    const std::string_view part = path.substr(start, end - start);
    start = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == ".." && !parts.empty() && parts.back() != "..") {
      parts.pop_back();
    } else if (part != ".." || slashes == 0) {
      parts.push_back(part);
    }
  }
  std::string normal(slashes, '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) normal += '/';
    normal += parts[i];
  }
  return normal.empty() ? "." : normal;
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
