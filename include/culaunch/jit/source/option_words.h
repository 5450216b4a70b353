// The meaning of a compiler's option words for a cached compilation.
#pragma once

#include <string>
#include <string_view>

#include "../../error.h"
#include "../../version.h"
#include "characters.h"
#include "phases.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// Whether a word is one of several, with a space between each.
inline bool IsAmong(std::string_view words, const std::string& word) {
  if (word.empty() || word.find(' ') != kNowhere) return false;
  return (" " + std::string(words) + " ").find(" " + word + " ") != kNowhere;
}

// Why an option is refused; empty if it is not. A compilation must handle it itself, or it makes a
// compiler do something other than compile, or write files beside the image. A cache hit would skip
// that.
inline std::string WhyRefused(const std::string& option) {
  // Options that compile() must interpret itself, to find files for the key or to select the
  // result.
  static constexpr const char* const kOwn[][2] = {
      {"-I --include-path -isystem --system-include", "include_dirs"},
      {"-arch --gpu-architecture -gencode --generate-code", "arch"},
      {"-pch --pch --pch-dir --create-pch --use-pch", "pch"},
      {"-dlto --dlink-time-opt", "lto"},
      {"-rdc --relocatable-device-code -dc --device-c", "relocatable"},
      {"-optf --options-file", "extra_options, one by one,"}};
  static constexpr const char* const kRefused[][2] = {
      {"-h --help -V --version --dryrun -dryrun --list-gpu-code -code-ls --list-gpu-arch -arch-ls "
       "-E --preprocess -M -MM --generate-dependencies",
       "it makes the compiler print instead of compiling"},
      {"-MD -MMD -MF --dependency-output --generate-dependencies-with-compile -time --time "
       "-fdevice-time-trace --fdevice-time-trace -keep --keep -keep-dir --keep-dir -save-temps "
       "--save-temps -clean --clean-targets",
       "it writes a file, which a cache hit would not; run the compiler directly"},
      {"-o --output-file -odir --output-directory", "the image is returned; save it afterwards"},
      {"-c --compile -cubin --cubin -ptx --ptx -fatbin --fatbin -lib --lib -link --link -run --run "
       "-dlink --device-link -dw --device-w -ltoir --ltoir -optix-ir --optix-ir -cuda --cuda",
       "arch, relocatable and lto select the output"}};
  if (Stripped(option).empty() || option.find('\0') != kNowhere) return "it is not an option";
  const std::string flag = StartsWith(option, "-I") ? "-I" : option.substr(0, option.find('='));
  for (const auto& own : kOwn) {
    if (IsAmong(own[0], flag)) return std::string("use ") + own[1] + " for it";
  }
  for (const auto& refused : kRefused) {
    if (IsAmong(refused[0], flag)) return refused[1];
  }
  return {};
}

inline void CheckOption(const std::string& option) {
  const std::string why = WhyRefused(option);
  if (!why.empty()) throw Error("extra_options has \"" + option + "\": " + why);
}

// Whether the value of an option of either compiler may be the next word.
inline bool TakesWord(const std::string& flag) {
  return IsAmong(
      "-D --define-macro -U --undefine-macro -include --pre-include -std --std -maxrregcount "
      "--maxrregcount -Xptxas --ptxas-options -ccbin -Xcudafe --compiler-bindir -Xcompiler "
      "--compiler-options -Xlinker --linker-options -diag-suppress --diag-suppress -diag-error "
      "--diag-error -diag-warn --diag-warn -opt-info --opt-info -default-stream --default-stream",
      flag);
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
