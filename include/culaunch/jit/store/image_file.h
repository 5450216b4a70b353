// Files that hold an image with its names and signatures; src/culaunch/_image/metadata.py has the
// format.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "../../error.h"
#include "../../image_metadata.h"
#include "../../version.h"
#include "../base/json_text.h"
#include "../files/files.h"
#include "../files/output_file.h"
#include "entry.h"
#include "image.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

constexpr std::string_view kElfMagic("\x7f\x45\x4c\x46", 4);
constexpr std::string_view kFatbinMagic("\x50\xed\x55\xba", 4);

// The format according to the first bytes; an unknown one is an error. culaunch::CheckImage also
// refuses images that the driver cannot load, such as objects that are not linked yet.
inline ImageFormat FormatOf(std::string_view bytes, const std::string& where) {
  if (StartsWith(bytes, kElfMagic)) return ImageFormat::kCubin;
  if (StartsWith(bytes, kFatbinMagic)) return ImageFormat::kFatbin;
  if (bytes.substr(0, 65536).find(".version") != kNowhere) return ImageFormat::kPtx;
  throw Error(where + (bytes.empty() ? " is empty"
                                     : " is not an image: neither a cubin, nor a fatbin, nor PTX"));
}

inline std::string Word(uint32_t value) {
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

inline std::string MetadataOf(const Image& image) {
  auto names = image.names;
  auto signatures = image.signatures;
  std::sort(names.begin(), names.end());
  std::sort(signatures.begin(), signatures.end());
  JsonText json(",", ":");
  json.Open('{').Key("names").Open('{');
  for (const auto& [name, lowered] : names) json.Key(name).String(lowered);
  json.Close('}').Key("signatures").Open('{');
  for (const auto& [kernel, types] : signatures) {
    json.Key(kernel);
    WriteTypes(types, &json);
  }
  return json.Close('}').Close('}').text();
}

constexpr std::string_view kPtxMark = "\n// culaunch: ";
constexpr size_t kBlockTail = 16;        // u32 length, u32 checksum, the magic
constexpr size_t kBlockPiece = 65512;    // of the block in a fatbin's extra containers
constexpr size_t kContainerHeader = 16;  // of each of those

inline std::string FileOf(const Image& image) {
  if (image.names.empty() && image.signatures.empty()) return image.data;
  const ImageFormat format = FormatOf(image.data, "the image");
  std::string text = MetadataOf(image);
  if (format == ImageFormat::kPtx) return image.data + std::string(kPtxMark) + text + "\n";
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::string block =
      text + Word(static_cast<uint32_t>(text.size())) + Word(detail::Checksum(text)) + "culaunch";
  if (format == ImageFormat::kCubin) return image.data + block;
  std::string file = image.data;
  for (size_t at = 0; at < block.size(); at += kBlockPiece) {
    const std::string piece = block.substr(at, kBlockPiece);
    const uint32_t size = kContainerHeader + static_cast<uint32_t>(piece.size());
    file.append(kFatbinMagic) += Word(1u | size << 16) + Word(0) + Word(0) + piece;
  }
  return file;
}

// The image in the bytes of a file.
inline Image ImageOf(std::string bytes, const std::string& where) {
  const ImageFormat format = FormatOf(bytes, where);
  std::string text;
  detail::MetadataText(bytes.data(), bytes.size(), format, &text).OrThrow();
  Image image;
  if (!text.empty()) {
    ImageMetadata found;
    ReadMetadata(bytes.data(), bytes.size(), format, &found).OrThrow();
    for (const auto& [name, number] : found.names.numbers()) {
      image.names.emplace_back(name, found.names.values()[number]);
    }
    for (const auto& [kernel, number] : found.signatures.numbers()) {
      image.signatures.emplace_back(kernel, found.signatures.values()[number]);
    }
    const size_t block = text.size() + kBlockTail;
    const size_t pieces = (block + kBlockPiece - 1) / kBlockPiece;
    bytes.resize(bytes.size() - (format == ImageFormat::kPtx ? kPtxMark.size() + text.size() + 1
                                 : format == ImageFormat::kCubin
                                     ? block
                                     : block + pieces * kContainerHeader));
  }
  image.data = std::move(bytes);
  return image;
}

inline std::string ReadFile(const std::string& path, const char* what) {
  const Descriptor opened(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string bytes;
  if (!opened || !ReadAll(opened.get(), &bytes)) {
    throw Error(std::string("cannot read ") + what + " " + path);
  }
  return bytes;
}

inline void WriteFile(const std::string& path, const std::string& bytes) {
  if (!WriteOutput(path, bytes)) {
    throw Error("cannot write the image " + path + ": " + std::strerror(errno));
  }
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
