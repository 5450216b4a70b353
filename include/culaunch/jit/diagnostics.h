// The culaunch::CompileError of a failed compile: the compiler's message, with the place, the
// source line, the options, and what helps.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "../error.h"
#include "../text.h"
#include "../version.h"
#include "compile_error.h"
#include "header_hints.h"
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
  FindHeader find;
  Wording wording;
};

class Diagnosis {
 public:
  explicit Diagnosis(const FailedCompile& failed) : failed_(failed) { ReadLog(); }

  CompileError Error() const {
    std::string text = headline_;
    const auto add = [&](const std::string& part) {
      if (!part.empty()) text.append("\n").append(part);
    };
    // One hint is enough, and the first is the most likely one.
    std::string hint = MissingHeaderHint();
    if (hint.empty()) hint = NameHint();
    if (hint.empty()) hint = KeywordHint();
    add(hint);
    for (const std::string& note : failed_.notes) add(note);
    std::string options = "options:";
    for (const std::string& flag : failed_.flags) options.append(" ").append(flag);
    if (rest_.empty()) {
      add(options + " (" + failed_.compiler +
          (Trimmed(failed_.log).empty() ? ", which wrote no log)" : ")"));
      add(BlamedOption());
    } else {
      add(options);
      add(BlamedOption());
      add(failed_.compiler + " says:\n" + Shortened(rest_));
    }
    return CompileError(text, failed_.log);
  }

 private:
  struct Line {
    size_t start;
    std::string_view text;
  };

  static std::vector<Line> LinesOf(std::string_view text) {
    std::vector<Line> lines;
    for (size_t start = 0; start < text.size();) {
      const size_t end = std::min(text.find('\n', start), text.size());
      lines.push_back({start, text.substr(start, end - start)});
      start = end + 1;
    }
    return lines;
  }

  static std::string_view Trimmed(std::string_view text) {
    constexpr std::string_view kBlank("\0\n ", 3);
    const size_t start = text.find_first_not_of(kBlank);
    if (start == kNowhere) return {};
    return text.substr(start, text.find_last_not_of(kBlank) - start + 1);
  }

  static std::string Shortened(const std::string& text) {
    size_t most = 8000;
    if (text.size() <= most) return text;
    // Not within a character.
    while ((static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
    return text.substr(0, most) + "\n[...]";
  }

  // "error: ..." and "catastrophic error: ...".
  static bool IsError(std::string_view what) {
    const size_t end = what.find_first_not_of("abcdefghijklmnopqrstuvwxyz ");
    return what.substr(0, end).find("error") != kNowhere;
  }

  static bool ReadNumber(std::string_view digits, size_t* number) {
    if (digits.empty() || digits.find_first_not_of("0123456789") != kNowhere) return false;
    *number = digits.size() < 9 ? std::stoul(std::string(digits)) : 0;
    return true;
  }

  // "kernel.cu(3): error: ..." from NVRTC and nvcc.
  static bool ReadFrontEnd(std::string_view line, std::string_view* file, size_t* number) {
    const size_t open = line.find('(');
    const size_t close = open == kNowhere ? kNowhere : line.find("): ", open);
    if (close == kNowhere || open == 0) return false;
    *file = line.substr(0, open);
    return ReadNumber(line.substr(open + 1, close - open - 1), number) &&
           IsError(line.substr(close + 3));
  }

  // "kernel.cu:3:5: error: ..." from host compilers.
  static bool ReadHost(std::string_view line, std::string_view* file, size_t* number) {
    const size_t first = line.find(':');
    const size_t second = first == kNowhere ? kNowhere : line.find(':', first + 1);
    if (second == kNowhere || first == 0) return false;
    *file = line.substr(0, first);
    std::string_view what = line.substr(second + 1);
    size_t column = 0;
    if (const size_t third = what.find(':'); third != kNowhere) {
      if (ReadNumber(what.substr(0, third), &column)) what.remove_prefix(third + 1);
    }
    return ReadNumber(line.substr(first + 1, second - first - 1), number) &&
           StartsWith(what, " ") && IsError(what);
  }

  // Divide the log: the first error with its source line, and the rest.
  void ReadLog() {
    const std::string_view log = Trimmed(failed_.log);
    const std::vector<Line> lines = LinesOf(log);
    for (const auto read : {ReadFrontEnd, ReadHost}) {
      for (size_t i = 0; i < lines.size(); ++i) {
        std::string_view file;
        size_t number = 0;
        if (!read(lines[i].text, &file, &number)) continue;
        std::vector<std::string_view> after;
        for (size_t k = i + 1; k < lines.size(); ++k) after.push_back(lines[k].text);
        headline_ = lines[i].text;
        ShowSource(std::string(file), number, &after);
        std::string rest(log.substr(0, lines[i].start));
        for (const std::string_view line : after) {
          if (StartsWith(line, "1 error detected in the compilation of ")) continue;
          rest.append(line).append("\n");
        }
        rest_ = Trimmed(rest);
        return;
      }
    }
    // The log's form is unknown.
    for (const Line& line : lines) {
      const bool is_it = line.text.find("error") != kNowhere || line.text.find("fatal") != kNowhere;
      if (is_it && headline_.empty()) headline_ = Stripped(line.text);
    }
    if (headline_.empty()) headline_ = failed_.compiler + " failed";
    rest_ = log;
  }

  void ShowSource(const std::string& file, size_t number, std::vector<std::string_view>* after) {
    const auto source = failed_.sources.find(file);
    if (source == failed_.sources.end() || number == 0) return;
    const std::vector<Line> lines = LinesOf(source->second);
    if (number > lines.size()) return;
    const std::string_view text = lines[number - 1].text;
    const std::string place = detail::ToText(number);
    headline_ += "\n  " + std::string(5 - std::min<size_t>(5, place.size()), ' ') + place + " | " +
                 std::string(text);
    // The compiler has already printed this line, with a mark below it.
    if (after->empty() || after->front() != "  " + std::string(text)) return;
    after->erase(after->begin());
    if (after->empty() || !StartsWith(after->front(), "  ") ||
        after->front().find_first_not_of(" ~^") != kNowhere) {
      return;
    }
    headline_ += "\n        | " + std::string(after->front().substr(2));
    after->erase(after->begin());
  }

  // If no source line is at fault, an option that the log names is.
  std::string BlamedOption() const {
    for (const Line& line : LinesOf(failed_.log)) {
      std::string_view file;
      size_t number = 0;
      if (line.text.find("error") == kNowhere || ReadFrontEnd(line.text, &file, &number)) continue;
      for (const std::string& flag : failed_.flags) {
        const std::string name = flag.substr(0, flag.find('='));
        const bool is_named = line.text.find(flag) != kNowhere ||
                              (name.size() > 2 && line.text.find(name) != kNowhere);
        if (is_named) return "the option at fault is " + flag;
      }
    }
    return {};
  }

  std::string MissingHeaderHint() const {
    const std::string header = MissingHeader(failed_.log);
    return header.empty() ? std::string()
                          : HeaderHint(header, failed_.compiler, failed_.find, failed_.wording);
  }

  std::string NameHint() const {
    std::string_view name = Between(failed_.log, "Input name expression was: \"", "\"");
    if (name.empty()) {
      // nvcc's place of an instance: "names: scale<nope>(1): error ...".
      for (const Line& line : LinesOf(failed_.log)) {
        const size_t end = line.text.rfind("): error");
        const size_t open = end == kNowhere ? kNowhere : line.text.rfind('(', end);
        if (open == kNowhere || !StartsWith(line.text, "names: ")) continue;
        name = line.text.substr(7, open - 7);
        break;
      }
    }
    if (name.empty()) return {};
    return "names has " + failed_.wording.Quoted(Tight(name)) +
           ", which names no kernel of the source: write it as the source would, qualified and " +
           "with every template argument";
  }

  // Without spaces beside punctuation, where the compiler puts them.
  static std::string Tight(std::string_view name) {
    constexpr std::string_view kMarks = "<>,:()*&";
    std::string tight;
    for (const char one : Stripped(name)) {
      const bool is_mark = kMarks.find(one) != kNowhere;
      while (is_mark && !tight.empty() && tight.back() == ' ') tight.pop_back();
      if (one != ' ' || (!tight.empty() && kMarks.find(tight.back()) == kNowhere)) tight += one;
    }
    return tight;
  }

  std::string KeywordHint() const {
    if (failed_.log.find("Consider using -default-device") == kNowhere) return {};
    return "mark it __device__; or " + std::string(failed_.wording.default_device) +
           ", which is what the compiler calls -default-device";
  }

  const FailedCompile& failed_;
  std::string headline_;
  std::string rest_;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
