// culaunch::Image: what was compiled, with the names and signatures that its bytes do not say.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "../error.h"
#include "../image_metadata.h"
#include "../version.h"
#include "json_text.h"

CULAUNCH_NAMESPACE_BEGIN

// A cubin, a fatbin or PTX.
struct Image {
  // A kernel's parameter types; an empty one is unknown.
  using Signature = std::vector<std::string>;

  std::string data;
  std::vector<std::pair<std::string, std::string>> names;  // name expression to lowered name
  std::vector<std::pair<std::string, Signature>> signatures;
  std::string log;  // what the compiler said

  // The bytes of a file that holds the image with its names and signatures, as culaunch.load and
  // culaunch::Module read it.
  std::string ToFile() const {
    if (names.empty() && signatures.empty()) return data;
    std::string text = Metadata();
    if (data.compare(0, 4,
                     "\x7f"
                     "ELF") != 0 &&
        !IsFatbin()) {
      return data + "\n// culaunch: " + text + "\n";
    }
    text.append((8 - text.size() % 8) % 8, ' ');
    std::string block =
        text + Word(static_cast<uint32_t>(text.size())) + Word(detail::Checksum(text)) + "culaunch";
    if (!IsFatbin()) return data + block;
    constexpr size_t kPiece = 65512;
    std::string file = data;
    for (size_t at = 0; at < block.size(); at += kPiece) {
      const std::string piece = block.substr(at, kPiece);
      const uint32_t size = 16 + static_cast<uint32_t>(piece.size());
      file += Word(kFatbinMagic) + Word(1u | size << 16) + Word(0) + Word(0) + piece;
    }
    return file;
  }

  void Save(const std::string& path) const {
    std::FILE* const file = std::fopen(path.c_str(), "wb");
    const std::string bytes = ToFile();
    const bool wrote =
        file != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    if ((file != nullptr && std::fclose(file) != 0) || !wrote) {
      throw Error("cannot write the image " + path);
    }
  }

 private:
  static constexpr uint32_t kFatbinMagic = 0xba55ed50;

  static std::string Word(uint32_t value) {
    std::string bytes;
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes += static_cast<char>(value >> shift & 255);
    }
    return bytes;
  }

  bool IsFatbin() const { return data.compare(0, 4, Word(kFatbinMagic)) == 0; }

  std::string Metadata() const {
    auto sorted_names = names;
    auto sorted_signatures = signatures;
    std::sort(sorted_names.begin(), sorted_names.end());
    std::sort(sorted_signatures.begin(), sorted_signatures.end());
    jit::JsonText json(",", ":");
    json.Open('{').Key("names").Open('{');
    for (const auto& [name, lowered] : sorted_names) json.Key(name).String(lowered);
    json.Close('}').Key("signatures").Open('{');
    for (const auto& [kernel, types] : sorted_signatures) {
      json.Key(kernel);
      WriteTypes(types, &json);
    }
    return json.Close('}').Close('}').text();
  }

 public:
  static void WriteTypes(const Signature& types, jit::JsonText* json) {
    json->Open('[');
    for (const std::string& type : types) {
      if (type.empty()) {
        json->Null();
      } else {
        json->String(type);
      }
    }
    json->Close(']');
  }
};

CULAUNCH_NAMESPACE_END
