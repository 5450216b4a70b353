// Translates culaunch::CompileOptions into the options of compilers.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../error.h"
#include "../text.h"
#include "../version.h"
#include "compile_options.h"
#include "source/characters.h"
#include "source/option_words.h"
#include "source/phases.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// The options of one compile in their one normal form: what extra_options say that a field can say
// is taken as if the field had said it.
class NormalOptions {
 public:
  explicit NormalOptions(const CompileOptions& given) : options_(given) {
    Check();
    options_.extra_options.clear();
    // Whether a macro is defined may depend on the order, which is the caller's then.
    bool is_ordered = false;
    for (const std::string& one : given.extra_options) {
      is_ordered = is_ordered || StartsWith(one, "-U") || StartsWith(one, "--undefine-macro");
    }
    bool has_std = !given.std.empty();
    bool has_registers = given.maxrregcount != 0;
    for (size_t i = 0; i < given.extra_options.size(); ++i) {
      const std::string& option = given.extra_options[i];
      const size_t equals = option.find('=');
      const std::string flag = option.substr(0, equals);
      const std::string value = equals == kNowhere ? "" : option.substr(equals + 1);
      std::pair<std::string, std::string> macro;
      if (bool* const field = Switch(option)) {
        *field = true;
      } else if ((flag == "-std" || flag == "--std") && !value.empty() && !has_std) {
        options_.std = value;
        has_std = true;
      } else if ((flag == "-maxrregcount" || flag == "--maxrregcount") && !has_registers &&
                 IsRegisterCount(value)) {
        options_.maxrregcount = std::stoi(value);
        has_registers = true;
      } else if (!is_ordered && IsMacro(option, &macro) && options_.defines.insert(macro).second) {
        // It is a field's now.
      } else {
        options_.extra_options.push_back(option);
        if (equals == kNowhere && TakesWord(flag) && i + 1 < given.extra_options.size()) {
          // The next word belongs to it, whatever it looks like.
          options_.extra_options.push_back(given.extra_options[++i]);
        }
      }
    }
  }

  const CompileOptions& get() const noexcept { return options_; }

  // The options in NVRTC's spelling, without the architecture and directories.
  std::vector<std::string> NvrtcFlags() const {
    std::vector<std::string> flags = FieldFlags();
    flags.insert(flags.end(), options_.extra_options.begin(), options_.extra_options.end());
    return flags;
  }

  // Those that fields say. nvcc has the same words, except for the last two.
  std::vector<std::string> FieldFlags() const {
    std::vector<std::string> flags;
    const auto add = [&](bool wanted, std::string flag) {
      if (wanted) flags.push_back(std::move(flag));
    };
    add(!options_.std.empty(), "--std=" + options_.std);
    for (const auto& [name, value] : options_.defines) {
      flags.push_back("--define-macro=" + name + "=" + value);
    }
    add(options_.fast_math, "--use_fast_math");
    add(options_.maxrregcount != 0, "--maxrregcount=" + detail::ToText(options_.maxrregcount));
    add(options_.relocatable, "--relocatable-device-code=true");
    add(options_.debug, "--device-debug");
    add(options_.line_info, "--generate-line-info");
    add(options_.extra_device_vectorization, "--extra-device-vectorization");
    add(options_.device_as_default_execution_space, "--device-as-default-execution-space");
    add(options_.lto, "--dlink-time-opt");
    return flags;
  }

  // The headers that options include before the first line, as `"name`.
  std::vector<std::string> ForcedIncludes() const {
    std::vector<std::string> found;
    const auto add = [&](const std::string& name) {
      const std::string spelled = "\"" + name;
      if (std::find(found.begin(), found.end(), spelled) == found.end()) found.push_back(spelled);
    };
    // One name for NVRTC, a list for nvcc.
    for (const std::string& names : Given({"-include", "--pre-include"}, false)) {
      add(names);
      for (size_t start = 0; start <= names.size();) {
        const size_t end = std::min(names.find(',', start), names.size());
        add(names.substr(start, end - start));
        start = end + 1;
      }
    }
    return found;
  }

  // The lines of the macros that the options define.
  std::string DefineLines() const {
    std::string lines;
    for (const auto& [name, value] : options_.defines) {
      lines += "#define " + name + " " + value + "\n";
    }
    for (const std::string& macro : Given({"-D", "--define-macro"}, true)) {
      const size_t equals = macro.find('=');
      lines += "#define " + macro.substr(0, equals) + " " +
               (equals == kNowhere ? "1" : macro.substr(equals + 1)) + "\n";
    }
    return lines;
  }

 private:
  void Check() const {
    if (options_.maxrregcount < 0 || options_.maxrregcount > 255) {
      throw Error(
          "maxrregcount must be in 1 to 255, or 0 for the compiler's "
          "choice (got " +
          detail::ToText(options_.maxrregcount) + ")");
    }
    for (const auto& [name, value] : options_.defines) {
      if (LeadingMacro(name) != name || name.empty() || value.find('\0') != kNowhere) {
        throw Error("defines has \"" + name + "\", which is not a macro name");
      }
    }
    for (const std::string& option : options_.extra_options) CheckOption(option);
  }

  bool* Switch(const std::string& option) {
    if (option == "-use_fast_math" || option == "--use_fast_math") return &options_.fast_math;
    if (option == "-lineinfo" || option == "--generate-line-info") return &options_.line_info;
    if (option == "-G" || option == "--device-debug") return &options_.debug;
    if (option == "-extra-device-vectorization" || option == "--extra-device-vectorization") {
      return &options_.extra_device_vectorization;
    }
    return nullptr;
  }

  static bool IsRegisterCount(const std::string& value) {
    if (value.empty() || value.find_first_not_of("0123456789") != kNowhere) return false;
    const std::string digits = value.substr(std::min(value.find_first_not_of('0'), value.size()));
    return !digits.empty() && digits.size() <= 3 && std::stoi(digits) <= 255;
  }

  // The part of a text that is a macro's name, with parameters if it has them.
  static std::string LeadingMacro(const std::string& text) {
    size_t end = 0;
    while (end < text.size() && static_cast<unsigned char>(text[end]) < 0x80 &&
           (IsLetter(text[end]) || (end != 0 && IsDigit(text[end])))) {
      ++end;
    }
    if (end != 0 && end < text.size() && text[end] == '(') {
      const size_t close = text.find(')', end);
      if (close != kNowhere) end = close + 1;
    }
    return text.substr(0, end);
  }

  // The macro that an option defines, if it does so in one word and plainly.
  static bool IsMacro(const std::string& option, std::pair<std::string, std::string>* macro) {
    static constexpr std::string_view kLong = "--define-macro=";
    std::string text;
    if (StartsWith(option, kLong)) {
      text = option.substr(kLong.size());
    } else if (StartsWith(option, "-D")) {
      text = option.substr(2);
    } else {
      return false;
    }
    // nvcc reads a comma as the start of another macro, and a backslash as a quote.
    if (text.find_first_of(",\\") != kNowhere) return false;
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (name.empty() || LeadingMacro(name) != name) return false;
    *macro = {name, equals == kNowhere ? "1" : text.substr(equals + 1)};
    return true;
  }

  // The values of these flags, in either spelling.
  std::vector<std::string> Given(const std::vector<std::string>& flags, bool are_macros) const {
    std::vector<std::string> found;
    const std::vector<std::string>& options = options_.extra_options;
    for (size_t i = 0; i < options.size(); ++i) {
      const size_t equals = options[i].find('=');
      if (std::find(flags.begin(), flags.end(), options[i].substr(0, equals)) != flags.end()) {
        if (equals != kNowhere) {
          found.push_back(options[i].substr(equals + 1));
        } else {
          found.push_back(i + 1 < options.size() ? options[++i] : "");
        }
      } else if (are_macros && StartsWith(options[i], "-D")) {
        found.push_back(options[i].substr(2));
      }
    }
    return found;
  }

  CompileOptions options_;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
