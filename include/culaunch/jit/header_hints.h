// Hints for a header that a compiler does not find.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../version.h"
#include "source/characters.h"
#include "source/phases.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// The words of hints: by default those of C++.
struct Wording {
  char quote = '"';
  const char* give_header =
      "give its text to AddHeader, or its directory to AddDirectory or include_dirs";
  const char* give_directory = "give its directory to AddDirectory or include_dirs";
  const char* default_device = "set device_as_default_execution_space";
  const char* other_compiler = "";  // which has the headers of the host

  std::string Quoted(std::string_view text) const { return quote + std::string(text) + quote; }
};

// The path of one of CUDA's own headers; empty if there is none.
using FindHeader = std::function<std::string(const std::string& name)>;

inline std::string_view Between(std::string_view text, std::string_view start,
                                std::string_view end) {
  const size_t at = text.find(start);
  if (at == kNowhere) return {};
  text.remove_prefix(at + start.size());
  return text.substr(0, text.find(end));
}

// The name of the header that a log says is missing; empty if none is.
inline std::string MissingHeader(std::string_view log) {
  for (const char* const said : {"could not open source file \"", "cannot open source file \""}) {
    const std::string_view found = Between(log, said, "\"");
    if (!found.empty()) return std::string(found);
  }
  // A host compiler: "fatal error: a.h: No such file or directory".
  const size_t end = log.find(": No such file or directory");
  if (end == kNowhere || end == 0) return {};
  const size_t start = log.find_last_of(" \t\n:", end - 1);
  return std::string(
      log.substr(start == kNowhere ? 0 : start + 1, end - (start == kNowhere ? 0 : start + 1)));
}

// The replacement of a header of the host's C++ library, such as "cmath".
inline std::string InsteadOf(const std::string& header, const FindHeader& find,
                             const Wording& wording) {
  struct BuiltIn {
    std::string_view header;
    const char* what;
  };
  static constexpr BuiltIn kBuiltIn[] = {{"cassert", "assert is"},
                                         {"cmath", "the mathematical functions are"},
                                         {"cstdio", "printf is"},
                                         {"cstdlib", "malloc, free and abs are"},
                                         {"cstring", "memcpy, memset and strlen are"}};
  std::vector<std::string> ways;
  for (const BuiltIn& one : kBuiltIn) {
    if (one.header == header) {
      ways.push_back("remove it (" + std::string(one.what) + " built in)");
    }
  }
  const bool has_cccl = find && !find("nv/target").empty();
  const std::string ours = "cuda/std/" + header;
  if (!has_cccl) {
    ways.push_back("include <" + ours + "> if CCCL has it");
  } else if (!find(ours).empty()) {
    ways.push_back("include <" + ours + ">");
  }
  if (ways.empty()) {
    ways.emplace_back("device code has no equivalent: leave it out (#ifndef __CUDACC_RTC__)");
  }
  if (*wording.other_compiler != '\0') ways.emplace_back(wording.other_compiler);
  std::string text;
  for (const std::string& way : ways) text.append(text.empty() ? "" : ", or ").append(way);
  return text;
}

// The hint for a missing header. compiler: "NVRTC 13.5".
inline std::string HeaderHint(const std::string& header, const std::string& compiler,
                              const FindHeader& find, const Wording& wording) {
  static constexpr const char* const kCHeaders[] = {"assert", "float", "limits", "math",  "stddef",
                                                    "stdint", "stdio", "stdlib", "string"};
  for (const std::string_view one : kCHeaders) {
    if (header == std::string(one) + ".h") {
      return "<" + header + "> is a header of the host compiler, which NVRTC does not have: " +
             InsteadOf("c" + std::string(one), find, wording);
    }
  }
  if (header.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == kNowhere) {
    return "<" + header + "> is a header of the host compiler, which NVRTC does not have: " +
           InsteadOf(header, find, wording);
  }
  constexpr std::string_view kStandard = "cuda/std/";
  if (StartsWith(header, kStandard) && find && !find("nv/target").empty()) {
    return "the installed CCCL has no <" + header +
           ">: " + InsteadOf(header.substr(kStandard.size()), find, wording);
  }
  struct Package {
    std::string_view start;  // of the header's name
    const char* name;
    bool has_toolkit_version;  // which pip can select
  };
  static constexpr Package kPackages[] = {
      {"cub/", "nvidia-cuda-cccl", false},      {"thrust/", "nvidia-cuda-cccl", false},
      {"cuda/", "nvidia-cuda-cccl", false},     {"nv/", "nvidia-cuda-cccl", false},
      {"mma.h", "nvidia-cuda-crt", true},       {"crt/", "nvidia-cuda-crt", true},
      {"curand", "nvidia-curand", false},       {"cublas", "nvidia-cublas", false},
      {"cutlass/", "nvidia-cutlass", false},    {"cute/", "nvidia-cutlass", false},
      {"cuda", "nvidia-cuda-runtime", true},    {"cooperative_groups", "nvidia-cuda-runtime", true},
      {"vector_", "nvidia-cuda-runtime", true}, {"device_", "nvidia-cuda-runtime", true},
      {"driver_", "nvidia-cuda-runtime", true}, {"host_", "nvidia-cuda-runtime", true}};
  const std::string lost = wording.Quoted(header) + " was not found: ";
  constexpr std::string_view kNvrtc = "NVRTC ";
  for (const Package& one : kPackages) {
    if (!StartsWith(header, one.start)) continue;
    const bool is_pinned = one.has_toolkit_version && StartsWith(compiler, kNvrtc);
    const std::string wanted =
        is_pinned ? "'" + std::string(one.name) + "==" + compiler.substr(kNvrtc.size()) + ".*'"
                  : one.name;
    return lost + "pip install " + wanted + ", or " + wording.give_directory;
  }
  return lost + wording.give_header;
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
