// The culaunch::CompileError of a failed compile: the compiler's message, with the place, the
// source line and the option at fault.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../error.h"
#include "../text.h"
#include "../version.h"
#include "compile_error.h"
#include "source/characters.h"
#include "source/phases.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// The inputs of a failed compilation.
struct FailedCompile {
  std::string log;
  std::string compiler;  // "NVRTC 13.5"
  std::vector<std::string> flags;
  std::map<std::string, std::string> sources;  // text by the name that the log uses
  std::vector<std::string> notes;              // other facts, such as rejected header directories
};

class Diagnosis {
 public:
  explicit Diagnosis(const FailedCompile& failed) : failed_(failed) {}

  CompileError Error() const {
    std::string text = Headline();
    const auto add = [&](const std::string& part) {
      if (!part.empty()) text.append("\n").append(part);
    };
    add(MissingHeaderHint());
    add(NameHint());
    add(BlamedOption());
    for (const std::string& note : failed_.notes) add(note);
    std::string options = "options:";
    for (const std::string& flag : failed_.flags) options.append(" ").append(flag);
    add(options);
    constexpr size_t kMost = 8000;
    const std::string& log = failed_.log;
    add(log.empty() ? failed_.compiler + " wrote no log"
                    : failed_.compiler + " says:\n" + log.substr(0, kMost) +
                          (log.size() > kMost ? "\n[...]" : ""));
    return CompileError(text, log);
  }

 private:
  // Call visit(line) for each line of a text until it gives true.
  template <class Visit>
  static void EachLine(std::string_view text, const Visit& visit) {
    for (size_t start = 0; start < text.size();) {
      const size_t end = text.find('\n', start) == kNowhere ? text.size() : text.find('\n', start);
      if (visit(text.substr(start, end - start))) return;
      start = end + 1;
    }
  }

  // "kernel.cu(3): error: ...": the file and the line of an error.
  static bool ReadPlace(std::string_view line, std::string* file, size_t* number) {
    const size_t open = line.find('(');
    const size_t close = open == kNowhere ? kNowhere : line.find("): ", open);
    if (close == kNowhere || line.find("error", close) == kNowhere) return false;
    const std::string digits(line.substr(open + 1, close - open - 1));
    if (digits.empty() || digits.find_first_not_of("0123456789") != kNowhere) return false;
    *file = line.substr(0, open);
    *number = digits.size() < 9 ? std::stoul(digits) : 0;
    return true;
  }

  std::string Headline() const {
    std::string headline, first;
    EachLine(failed_.log, [&](std::string_view line) {
      std::string file;
      size_t number = 0;
      if (first.empty() && line.find("error") != kNowhere) first = Stripped(line);
      if (!ReadPlace(line, &file, &number)) return false;
      headline = line;
      const auto source = failed_.sources.find(file);
      size_t at = 0;
      if (source == failed_.sources.end() || number == 0) return true;
      EachLine(source->second, [&](std::string_view text) {
        if (++at != number) return false;
        const std::string place = detail::ToText(number);
        headline += "\n  " + std::string(5 - std::min<size_t>(5, place.size()), ' ') + place +
                    " | " + std::string(text);
        return true;
      });
      return true;
    });
    if (!headline.empty()) return headline;
    return first.empty() ? failed_.compiler + " failed" : first;
  }

  // If no source line is at fault, an option that the log names is.
  std::string BlamedOption() const {
    std::string blamed;
    EachLine(failed_.log, [&](std::string_view line) {
      std::string file;
      size_t number = 0;
      if (line.find("error") == kNowhere || ReadPlace(line, &file, &number)) return false;
      for (const std::string& flag : failed_.flags) {
        const std::string name = flag.substr(0, flag.find('='));
        if (line.find(flag) == kNowhere && (name.size() < 3 || line.find(name) == kNowhere))
          continue;
        blamed = "the option at fault is " + flag;
        return true;
      }
      return false;
    });
    return blamed;
  }

  std::string MissingHeaderHint() const {
    static constexpr char kSaid[] = "could not open source file \"";
    static constexpr char kAlso[] = "cannot open source file \"";
    size_t at = failed_.log.find(kSaid);
    size_t start = at == kNowhere ? kNowhere : at + sizeof kSaid - 1;
    if (at == kNowhere) {
      at = failed_.log.find(kAlso);
      if (at == kNowhere) return {};
      start = at + sizeof kAlso - 1;
    }
    const std::string header = failed_.log.substr(start, failed_.log.find('"', start) - start);
    return "\"" + header +
           "\" was not found: give its text to AddHeader, or its directory "
           "to " +
           "AddDirectory or include_dirs; NVRTC has no headers of the host "
           "compiler (for <" +
           header + "> there may be <cuda/std/" + header + ">)";
  }

  std::string NameHint() const {
    static constexpr char kSaid[] = "Input name expression was: \"";
    const size_t at = failed_.log.find(kSaid);
    if (at == kNowhere) return {};
    const size_t start = at + sizeof kSaid - 1;
    const std::string name(Stripped(
        std::string_view(failed_.log).substr(start, failed_.log.find('"', start) - start)));
    return "names has \"" + name + "\", which names no kernel of the source: write it as the " +
           "source would, qualified and with every template argument";
  }

  const FailedCompile& failed_;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
