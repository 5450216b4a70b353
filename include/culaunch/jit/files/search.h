// The places where a compiler looks for included files, and the files that were found there.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../../version.h"
#include "footprint.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// The places where a compiler looks for included files.
struct Search {
  // In-memory headers by name; they win over directories.
  std::unordered_map<std::string, std::string_view> headers;
  std::vector<std::string> dirs;         // in order
  std::vector<std::string> quoted_dirs;  // searched first, for quoted names only
  // The compiler's own directories; asked only if the others lack something.
  std::function<const std::vector<std::string>&()> system;
  std::unordered_set<std::string> own;  // which of `dirs` are the compiler's own, too
  std::string identity;                 // other facts that distinguish compilers
  std::string working = "/";            // the directory in which it takes an in-memory header to be
  std::vector<std::string> forced;      // names that are included before the first line
  std::string defines;                  // lines that define the macros of the command line
  std::string unknown;                  // why it is not known where the compiler looks, if so
};

// The files that a source can pull in.
struct Includes {
  std::string text;    // the source, with names changed that NVRTC would not find
  std::string digest;  // of all contents, and of the file that each name leads to
  std::vector<std::pair<std::string, std::string>> memory;  // in-memory headers, by name
  std::vector<std::string> missing;  // names not found; they may well sit behind a false #if
  size_t system_files = 0;           // how many of the compiler's own headers there are
  Footprint footprint;
  std::string unknown;  // an include that the text does not name

  // Whether they take so long to read that they should be read once only. cuda_fp16.h reads some
  // tens of files in milliseconds, CUB hundreds in seconds.
  bool IsHeavy() const { return system_files > 150; }
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
