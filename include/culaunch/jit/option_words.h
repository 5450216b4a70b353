// The meaning of a compiler's option words for a cached compilation.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>

#include "../error.h"
#include "../version.h"
#include "characters.h"
#include "phases.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// Throw for an option that a compilation must handle itself, or that makes a compiler do something
// other than compile, or write files beside the image. A cache hit would skip that.
inline void CheckOption(const std::string& option) {
  static constexpr const char* const kOwn[][2] = {{"-I", "include_dirs"},
                                                  {"--include-path", "include_dirs"},
                                                  {"-isystem", "include_dirs"},
                                                  {"--system-include", "include_dirs"},
                                                  {"-arch", "arch"},
                                                  {"--gpu-architecture", "arch"},
                                                  {"-gencode", "arch"},
                                                  {"--generate-code", "arch"},
                                                  {"-pch", "pch"},
                                                  {"--pch", "pch"},
                                                  {"--pch-dir", "pch"},
                                                  {"--create-pch", "pch"},
                                                  {"--use-pch", "pch"},
                                                  {"-dlto", "lto"},
                                                  {"--dlink-time-opt", "lto"},
                                                  {"-rdc", "relocatable"},
                                                  {"--relocatable-device-code", "relocatable"},
                                                  {"-dc", "relocatable"},
                                                  {"--device-c", "relocatable"},
                                                  {"-optf", "extra_options, one by one,"},
                                                  {"--options-file", "extra_options, one by one,"}};
  static constexpr const char* const kRefused[] = {"-h",
                                                   "--help",
                                                   "-V",
                                                   "--version",
                                                   "--dryrun",
                                                   "-dryrun",
                                                   "--list-gpu-code",
                                                   "-code-ls",
                                                   "--list-gpu-arch",
                                                   "-arch-ls",
                                                   "-E",
                                                   "--preprocess",
                                                   "-M",
                                                   "-MM",
                                                   "--generate-dependencies",
                                                   "-MD",
                                                   "-MMD",
                                                   "-MF",
                                                   "--dependency-output",
                                                   "--generate-dependencies-with-compile",
                                                   "-time",
                                                   "--time",
                                                   "-fdevice-time-trace",
                                                   "--fdevice-time-trace",
                                                   "-keep",
                                                   "--keep",
                                                   "-keep-dir",
                                                   "--keep-dir",
                                                   "-save-temps",
                                                   "--save-temps",
                                                   "-clean",
                                                   "--clean-targets",
                                                   "-o",
                                                   "--output-file",
                                                   "-odir",
                                                   "--output-directory",
                                                   "-c",
                                                   "--compile",
                                                   "-cubin",
                                                   "--cubin",
                                                   "-ptx",
                                                   "--ptx",
                                                   "-fatbin",
                                                   "--fatbin",
                                                   "-lib",
                                                   "--lib",
                                                   "-link",
                                                   "--link",
                                                   "-run",
                                                   "--run",
                                                   "-dlink",
                                                   "--device-link",
                                                   "-dw",
                                                   "--device-w",
                                                   "-ltoir",
                                                   "--ltoir",
                                                   "-optix-ir",
                                                   "--optix-ir",
                                                   "-cuda",
                                                   "--cuda"};
  const std::string text = "extra_options has \"" + option + "\"";
  if (Stripped(option).empty() || option.find('\0') != kNowhere) {
    throw Error(text + ", which is no option");
  }
  const std::string flag = StartsWith(option, "-I") ? "-I" : option.substr(0, option.find('='));
  for (const auto& own : kOwn) {
    if (flag == own[0]) throw Error(text + ": use " + own[1] + " for it");
  }
  for (const char* const refused : kRefused) {
    if (flag == refused) {
      throw Error(text +
                  ": it makes the compiler do another thing than compile "
                  "to an image, " +
                  "or write a file, which a hit in the cache would not do");
    }
  }
}

// Options whose value may be the next word.
inline bool TakesWord(const std::string& flag) {
  static constexpr const char* const kFlags[] = {"-D",
                                                 "--define-macro",
                                                 "-U",
                                                 "--undefine-macro",
                                                 "-include",
                                                 "--pre-include",
                                                 "-std",
                                                 "--std",
                                                 "-maxrregcount",
                                                 "--maxrregcount",
                                                 "-Xptxas",
                                                 "--ptxas-options",
                                                 "-ccbin",
                                                 "-Xcudafe",
                                                 "--compiler-bindir",
                                                 "-Xcompiler",
                                                 "--compiler-options",
                                                 "-Xlinker",
                                                 "--linker-options",
                                                 "-diag-suppress",
                                                 "--diag-suppress",
                                                 "-diag-error",
                                                 "--diag-error",
                                                 "-diag-warn",
                                                 "--diag-warn",
                                                 "-opt-info",
                                                 "--opt-info",
                                                 "-default-stream",
                                                 "--default-stream"};
  return std::find(std::begin(kFlags), std::end(kFlags), flag) != std::end(kFlags);
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
