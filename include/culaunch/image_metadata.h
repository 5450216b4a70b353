// What culaunch.compile wrote behind an image: the names that its kernels were asked for by, and
// the types of their parameters. src/culaunch/_image/metadata.py has the format.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "by_name.h"
#include "error.h"
#include "image_check.h"
#include "json.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

struct ImageMetadata {
  // Name expression ("scale<float>") to the kernel's name in the image.
  ByName<std::string> names;
  // Kernel to the types of its parameters; an empty type is unknown.
  ByName<std::vector<std::string>> signatures;
};

namespace detail {

// CRC-32 as in zlib.
inline uint32_t Checksum(const std::string& text) noexcept {
  static constexpr uint32_t kNibbles[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                            0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                            0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                            0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  uint32_t state = 0xffffffffu;
  for (const char c : text) {
    state ^= static_cast<unsigned char>(c);
    state = (state >> 4) ^ kNibbles[state & 15];
    state = (state >> 4) ^ kNibbles[state & 15];
  }
  return ~state;
}

inline Error DamagedMetadata() {
  return Error("the image's metadata is damaged: compile the image again");
}

// The JSON behind an image; empty if there is none. Damaged JSON is an error.
inline Status MetadataText(const char* bytes, size_t size, ImageFormat format, std::string* found) {
  found->clear();
  static constexpr char kMagic[] = "culaunch";
  static constexpr char kMark[] = "\n// culaunch: ";
  constexpr size_t kTail = 16;      // u32 length, u32 checksum, the magic
  constexpr size_t kPiece = 65512;  // of the block in a fatbin's extra containers
  constexpr size_t kHeader = 16;    // of each of those
  if (format == ImageFormat::kPtx) {
    if (size < 2 || std::memcmp(bytes + size - 2, "}\n", 2) != 0) return {};
    size_t line = size - 1;
    while (line > 0 && bytes[line - 1] != '\n') --line;
    const size_t mark = sizeof kMark - 1;
    if (line == 0 || size - (line - 1) < mark + 1) return {};
    if (std::memcmp(bytes + line - 1, kMark, mark) != 0) return {};
    found->assign(bytes + line - 1 + mark, bytes + size - 1);
    return {};
  }
  if (size <= kTail || std::memcmp(bytes + size - 8, kMagic, 8) != 0) return {};
  uint32_t tail[2];
  std::memcpy(tail, bytes + size - kTail, sizeof tail);
  const size_t block = size_t{tail[0]} + kTail;
  const size_t pieces = format == ImageFormat::kFatbin ? (block + kPiece - 1) / kPiece : 0;
  std::string& text = *found;
  if (block + pieces * kHeader < size) {
    const char* at = bytes + (size - block - pieces * kHeader);
    if (pieces == 0) text.assign(at, block);
    for (size_t left = block; pieces != 0 && left != 0;) {
      const size_t piece = left < kPiece ? left : kPiece;
      text.append(at + kHeader, piece);
      at += kHeader + piece;
      left -= piece;
    }
    text.resize(tail[0]);
  }
  if (text.size() != tail[0] || Checksum(text) != tail[1]) {
    return DamagedMetadata();
  }
  return {};
}

}  // namespace detail

// Read what comes with an image whose format is known; nothing, if another compiler made the image.
inline Status ReadMetadata(const void* bytes, size_t size, ImageFormat format,
                           ImageMetadata* found) {
  std::string text;
  Status read = detail::MetadataText(static_cast<const char*>(bytes), size, format, &text);
  if (!read || text.empty()) return read;
  detail::JsonReader json(text);
  json.Object([&](const std::string& member) {
    if (member == "names") {
      json.Object([&](const std::string& name) { found->names.Set(name, json.String()); });
    } else if (member == "signatures") {
      json.Object([&](const std::string& kernel) {
        std::vector<std::string> types;
        json.Array([&] { types.push_back(json.IsNull() ? "" : json.String()); });
        found->signatures.Set(kernel, std::move(types));
      });
    } else {
      json.Skip();
    }
  });
  json.End();
  return json.ok() ? Status() : Status(detail::DamagedMetadata());
}

CULAUNCH_NAMESPACE_END
