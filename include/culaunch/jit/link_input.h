// The inputs of a link: their kinds, and the symbols that they define.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../error.h"
#include "../image_check.h"
#include "../text.h"
#include "../version.h"
#include "compile_error.h"
#include "link_options.h"
#include "source/characters.h"
#include "store/image_file.h"
#include "toolkit/nvjitlink_api.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// As Python's link calls the kinds, and as they are in keys.
inline constexpr std::pair<LinkKind, const char*> kLinkKinds[] = {{LinkKind::kCubin, "CUBIN"},
                                                                  {LinkKind::kPtx, "PTX"},
                                                                  {LinkKind::kFatbin, "FATBIN"},
                                                                  {LinkKind::kObject, "OBJECT"},
                                                                  {LinkKind::kLibrary, "LIBRARY"}};

inline LinkKind LinkKindOf(std::string_view name) {
  for (const auto& one : kLinkKinds) {
    if (one.second == name) return one.first;
  }
  throw Error(std::string(name) + " is not a kind of input");
}

// One input, read.
struct LinkPart {
  std::string where;  // for messages
  LinkKind kind = LinkKind::kCubin;
  Image image;
  bool is_lto = false;

  const char* KindName() const {
    for (const auto& one : kLinkKinds) {
      if (one.first == kind) return one.second;
    }
    return "";
  }
};

// Whether a fatbin has LTO-IR for any architecture.
inline bool HasLtoIr(const std::string& fatbin) {
  constexpr uint16_t kLtoIr = 8;
  detail::ImageReader image(fatbin.data(), fatbin.size());
  for (uint64_t start = 0; start + 16 <= fatbin.size() && image.ok();) {
    const auto header = image.Read<uint16_t>(start + 6, "the fatbin header's size");
    const auto length = image.Read<uint64_t>(start + 8, "the fatbin's size");
    if (header < 16 || !image.Require(start + header, length, "the fatbin's contents")) break;
    const uint64_t end = start + header + length;
    for (uint64_t at = start + header; at < end && image.ok();) {
      if (image.Read<uint16_t>(at, "a fatbin entry's kind") == kLtoIr) return true;
      const auto entry = image.Read<uint32_t>(at + 4, "a fatbin entry's header size");
      const auto payload = image.Read<uint64_t>(at + 8, "a fatbin entry's size");
      if (entry < 64 || !image.Require(at + entry, payload, "a fatbin entry")) break;
      at += entry + payload;
    }
    start = end;
    // Zeros may lie between containers.
    while (start < fatbin.size() && fatbin[start] == '\0') ++start;
  }
  return false;
}

inline LinkPart ReadLinkPart(const LinkInput& input, size_t index) {
  LinkPart part;
  part.where = "input " + detail::ToText(index);
  if (input.path.empty()) {
    part.image = input.image;
  } else {
    std::string bytes = ReadFile(input.path, "cannot read an input of the link:");
    const bool is_elf = StartsWith(bytes, kElfMagic) && bytes.size() >= 20;
    constexpr int kCudaMachine = 190;
    const int machine =
        is_elf ? static_cast<unsigned char>(bytes[18]) + 256 * static_cast<unsigned char>(bytes[19])
               : kCudaMachine;
    const bool is_library = StartsWith(bytes, "!<arch>\n");
    if (is_library || machine != kCudaMachine) {
      part.kind = is_library ? LinkKind::kLibrary : LinkKind::kObject;
      part.image.data = std::move(bytes);
      return part;
    }
    part.where = input.path;
    part.image = ImageOf(std::move(bytes), input.path);
  }
  const ImageFormat format = FormatOf(part.image.data, part.where);
  part.kind = format == ImageFormat::kCubin    ? LinkKind::kCubin
              : format == ImageFormat::kFatbin ? LinkKind::kFatbin
                                               : LinkKind::kPtx;
  part.is_lto = format == ImageFormat::kFatbin && HasLtoIr(part.image.data);
  return part;
}

// The symbols of a cubin that nothing else may define.
inline std::set<std::string> StrongSymbols(const std::string& cubin, const std::string& where) {
  detail::ImageReader image(cubin.data(), cubin.size());
  const auto table = image.Read<uint64_t>(40, "e_shoff");
  const auto count = image.Read<uint16_t>(60, "e_shnum");
  const auto section = [&](uint64_t i) { return table + uint64_t{64} * i; };
  std::set<std::string> found;
  for (uint16_t i = 0; i < count && image.ok(); ++i) {
    constexpr uint32_t kSymbols = 2;
    if (image.Read<uint32_t>(section(i) + 4, "sh_type") != kSymbols) continue;
    const auto start = image.Read<uint64_t>(section(i) + 24, "sh_offset");
    const auto size = image.Read<uint64_t>(section(i) + 32, "sh_size");
    const auto names = section(image.Read<uint32_t>(section(i) + 40, "sh_link"));
    const auto text = image.Read<uint64_t>(names + 24, "sh_offset");
    const auto text_size = image.Read<uint64_t>(names + 32, "sh_size");
    if (!image.Require(start, size, "the symbols") ||
        !image.Require(text, text_size, "the symbols' names")) {
      break;
    }
    for (uint64_t at = start; at + 24 <= start + size && image.ok(); at += 24) {
      const auto name = image.Read<uint32_t>(at, "a symbol's name");
      const auto info = image.Read<uint8_t>(at + 4, "a symbol's kind");
      const auto where_defined = image.Read<uint16_t>(at + 6, "a symbol's section");
      // Global, with a section and no file, not undefined, and with no reserved number (common,
      // absolute). CUDA has kinds of its own for variables.
      const int kind = info & 15;
      const bool is_thing = kind != 0 && kind != 3 && kind != 4;
      if (info >> 4 != 1 || !is_thing || where_defined == 0 || where_defined >= 0xff00) continue;
      if (name >= text_size) {
        image.Fail(
            "the image is malformed: a symbol's name is not within the section with the names");
        break;
      }
      const std::string_view rest(cubin.data() + text + name, text_size - name);
      found.emplace(rest.substr(0, rest.find('\0')));
    }
  }
  if (!image.ok()) throw Error(where + ": " + image.problem());
  return found;
}

// The kernels that PTX text shows to others.
inline std::set<std::string> VisibleEntries(std::string_view ptx) {
  std::set<std::string> found;
  for (size_t start = 0; start < ptx.size();) {
    const size_t end = std::min(ptx.find('\n', start), ptx.size());
    std::string_view line = ptx.substr(start, end - start);
    start = end + 1;
    bool is_entry = true;
    for (const std::string_view word : {".visible", ".entry"}) {
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      is_entry = is_entry && StartsWith(line, word);
      if (!is_entry) break;
      line.remove_prefix(word.size());
      is_entry = !line.empty() && (line[0] == ' ' || line[0] == '\t');
    }
    if (!is_entry) continue;
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    size_t size = 0;
    while (size < line.size() && (IsNamePart(line[size]) || line[size] == '$')) ++size;
    if (size != 0) found.emplace(line.substr(0, size));
  }
  return found;
}

// nvJitLink prints "Multiple definition" to the terminal and then reports success, with an image
// that mixes both definitions, or crashes. So duplicates are searched for before the link.
inline void CheckDuplicates(const std::vector<LinkPart>& parts) {
  std::map<std::string, std::string> first;
  std::string log;
  for (const LinkPart& part : parts) {
    std::set<std::string> defined;
    if (part.kind == LinkKind::kCubin) defined = StrongSymbols(part.image.data, part.where);
    if (part.kind == LinkKind::kPtx) defined = VisibleEntries(part.image.data);
    for (const std::string& name : defined) {
      const auto [known, is_new] = first.emplace(name, part.where);
      if (is_new) continue;
      log.append(log.empty() ? "" : "\n").append("'" + name + "' is defined in " + known->second);
      log.append(" and in " + part.where);
    }
  }
  if (log.empty()) return;
  throw CompileError("linking failed: " + log +
                         "\nRename one, make it static, or put it in a namespace of its own",
                     log);
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
