// Check that an image lies completely within its bytes, because the driver reads it without knowing
// its size.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "error.h"
#include "text.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

enum class ImageFormat { kCubin, kFatbin, kPtx };

namespace detail {

// Little-endian fields of a byte range, bounds-checked. The first problem is kept, and whatever is
// read after it is zero.
class ImageReader {
 public:
  ImageReader(const void* bytes, size_t size)
      : bytes_(static_cast<const unsigned char*>(bytes)), size_(size) {}

  size_t size() const { return size_; }
  bool ok() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }

  void Fail(const std::string& problem) {
    if (ok()) problem_ = problem;
  }

  template <class T>
  T Read(uint64_t offset, const char* what) {
    T value{};
    if (Require(offset, sizeof(T), what)) std::memcpy(&value, bytes_ + offset, sizeof(T));
    return value;
  }

  bool Require(uint64_t offset, uint64_t length, const char* what) {
    if (offset > size_ || length > size_ - offset) {
      Fail("the image is truncated or malformed: " + std::string(what) + " of " + ToText(length) +
           " bytes at offset " + ToText(offset) + " does not fit in its " + ToText(size_) +
           " bytes");
    }
    return ok();
  }

 private:
  const unsigned char* bytes_;
  size_t size_;
  std::string problem_;
};

// The names of the sections: if they are not where the header says, the driver takes the process
// down (seen with driver 580).
inline void CheckSectionNames(ImageReader& image, uint64_t table, uint16_t count) {
  const auto index = image.Read<uint16_t>(62, "e_shstrndx");
  constexpr uint32_t kStrings = 3;
  const uint64_t header = table + uint64_t{64} * index;
  if (index >= count || image.Read<uint32_t>(header + 4, "sh_type") != kStrings) {
    return image.Fail("the image is malformed: of its " + ToText(count) + " sections number " +
                      ToText(index) + " should have their names, but does not");
  }
  const auto at = image.Read<uint64_t>(header + 24, "sh_offset");
  const auto size = image.Read<uint64_t>(header + 32, "sh_size");
  bool has_own_name = false;
  for (uint16_t i = 0; i < count && image.ok(); ++i) {
    const auto name = image.Read<uint32_t>(table + uint64_t{64} * i, "sh_name");
    if (name >= size || image.Read<uint8_t>(at + size - 1, "a section's name") != 0) {
      return image.Fail("the image is malformed: the name of section " + ToText(i) +
                        " does not end within the section with the names");
    }
    const auto word = [&](uint64_t k) { return image.Read<uint8_t>(at + name + k, "a name"); };
    has_own_name |= i == index && size - name >= 10 && word(0) == '.' && word(1) == 's' &&
                    word(2) == 'h' && word(3) == 's';
  }
  if (!has_own_name) {
    return image.Fail("the image is malformed: its section " + ToText(index) +
                      " should have the names of the sections, but is not .shstrtab");
  }
}

// The sections that symbols and relocations refer to: the driver looks them up without a check.
inline void CheckReferences(ImageReader& image, uint64_t header, uint16_t index, uint16_t count) {
  constexpr uint32_t kSymbols = 2;
  constexpr uint32_t kRelocationsWithAddends = 4;
  constexpr uint32_t kRelocations = 9;
  const auto type = image.Read<uint32_t>(header + 4, "sh_type");
  if (type == kRelocations || type == kRelocationsWithAddends) {
    const auto target = image.Read<uint32_t>(header + 44, "sh_info");
    if (target < count) return;
    return image.Fail("the image is malformed: section " + ToText(index) + " of its " +
                      ToText(count) + " sections relocates number " + ToText(target));
  }
  if (type != kSymbols) return;
  constexpr uint64_t kSymbol = 24;        // bytes
  constexpr uint16_t kReserved = 0xff00;  // from there on, a number does not mean a section
  const auto begin = image.Read<uint64_t>(header + 24, "sh_offset");
  const auto symbols = image.Read<uint64_t>(header + 32, "sh_size") / kSymbol;
  for (uint64_t i = 0; i < symbols && image.ok(); ++i) {
    const auto section = image.Read<uint16_t>(begin + kSymbol * i + 6, "st_shndx");
    if (section < count || section >= kReserved) continue;
    image.Fail("the image is malformed: symbol " + ToText(i) + " is in section " + ToText(section) +
               " of its " + ToText(count));
  }
}

// ELF-64 (System V ABI): the header, the section table and each section's contents.
inline void CheckCubin(ImageReader& image) {
  image.Require(0, 64, "the ELF header");
  if (image.Read<uint8_t>(4, "the ELF class") != 2 || image.Read<uint8_t>(5, "the ELF data") != 1) {
    return image.Fail("the image is not a cubin: its ELF header is not 64-bit little-endian");
  }
  const auto machine = image.Read<uint16_t>(18, "e_machine");
  if (machine != 190) {  // EM_CUDA
    return image.Fail("the image is an ELF file for machine " + ToText(machine) +
                      ", not for CUDA (190): give the cubin or fatbin inside it");
  }
  if (image.Read<uint16_t>(16, "e_type") == 1) {
    return image.Fail(
        "the image is a relocatable cubin (made with -rdc=true or -dc): link it first");
  }
  const auto table = image.Read<uint64_t>(40, "e_shoff");
  const auto count = image.Read<uint16_t>(60, "e_shnum");
  if (image.Read<uint16_t>(58, "e_shentsize") != 64 && count != 0) {
    return image.Fail("the image is malformed: its section headers are not 64 bytes long");
  }
  image.Require(table, uint64_t{64} * count, "the section table");
  for (uint16_t i = 0; i < count && image.ok(); ++i) {
    const uint64_t header = table + uint64_t{64} * i;
    const auto link = image.Read<uint32_t>(header + 40, "sh_link");
    if (link >= count) {
      return image.Fail("the image is malformed: section " + ToText(i) + " of its " +
                        ToText(count) + " sections links to number " + ToText(link));
    }
    constexpr uint32_t kNoBits = 8;
    if (image.Read<uint32_t>(header + 4, "sh_type") == kNoBits) continue;
    image.Require(image.Read<uint64_t>(header + 24, "sh_offset"),
                  image.Read<uint64_t>(header + 32, "sh_size"), "a section");
    if (image.ok()) CheckReferences(image, header, i, count);
  }
  if (count != 0) CheckSectionNames(image, table, count);
  // Format 8, of CUDA 12.8 and newer: ptxas sets 2 or 4 there, and 1 takes the process down.
  if (image.Read<uint8_t>(8, "the ABI version") == 8 &&
      (image.Read<uint8_t>(48, "e_flags") & 1) != 0) {
    return image.Fail("the image is malformed: it has an ELF flag (1) that no cubin has");
  }
  const auto segments = image.Read<uint64_t>(32, "e_phoff");
  const auto segment_count = image.Read<uint16_t>(56, "e_phnum");
  if (image.Read<uint16_t>(54, "e_phentsize") != 56 && segment_count != 0) {
    return image.Fail("the image is malformed: its program headers are not 56 bytes long");
  }
  for (uint16_t i = 0; i < segment_count && image.ok(); ++i) {
    const uint64_t header = segments + uint64_t{56} * i;
    image.Require(header, 56, "a program header");
    // Cubins of CUDA 11 to 13 have only these two types. Anything else is not a program header.
    constexpr uint32_t kLoad = 1;
    constexpr uint32_t kHeaders = 6;
    const auto type = image.Read<uint32_t>(header, "p_type");
    if (type != kLoad && type != kHeaders) {
      return image.Fail("the image is malformed: program header " + ToText(i) + " has type " +
                        ToText(type) + ", which no cubin has");
    }
    image.Require(image.Read<uint64_t>(header + 8, "p_offset"),
                  image.Read<uint64_t>(header + 32, "p_filesz"), "a segment");
  }
}

// A fatbin container: u32 magic, u16 version, u16 header size, u64 size, then entries whose
// headers hold their size at 4 and their payload's at 8.
inline void CheckFatbin(ImageReader& image) {
  const auto header = image.Read<uint16_t>(6, "the fatbin header's size");
  const auto length = image.Read<uint64_t>(8, "the fatbin's size");
  if (header < 16) return image.Fail("the image is malformed: its fatbin header is too short");
  image.Require(header, length, "the fatbin's contents");
  for (uint64_t at = header, end = header + length; at < end && image.ok();) {
    const auto entry = image.Read<uint32_t>(at + 4, "a fatbin entry's header size");
    const auto payload = image.Read<uint64_t>(at + 8, "a fatbin entry's size");
    if (entry < 64)
      return image.Fail("the image is malformed: a fatbin entry's header is too short");
    image.Require(at, entry, "a fatbin entry's header");
    image.Require(at + entry, payload, "a fatbin entry");
    at += entry + payload;
  }
}

inline std::string Hex(const void* bytes, size_t size) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    const unsigned char byte = static_cast<const unsigned char*>(bytes)[i];
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace detail

// Find the format of an image, and check that everything it describes lies within its bytes.
inline Status CheckImage(const void* bytes, size_t size, ImageFormat* format) {
  if (bytes == nullptr || size == 0) return Error("the image is empty");
  detail::ImageReader image(bytes, size);
  const uint32_t magic = size >= 4 ? image.Read<uint32_t>(0, "the magic number") : 0;
  if (magic == 0x464c457f) {  // "\x7fELF"
    detail::CheckCubin(image);
    *format = ImageFormat::kCubin;
  } else if (magic == 0xba55ed50) {
    detail::CheckFatbin(image);
    *format = ImageFormat::kFatbin;
  } else if (std::string(static_cast<const char*>(bytes), size < 65536 ? size : 65536)
                 .find(".version") != std::string::npos) {
    *format = ImageFormat::kPtx;
  } else {
    return Error(
        "the bytes are not an image: neither a cubin, nor a fatbin, nor PTX (they begin with " +
        std::string("0x") + detail::Hex(bytes, size < 4 ? size : 4) + ")");
  }
  return image.ok() ? Status() : Status(Error(image.problem()));
}

CULAUNCH_NAMESPACE_END
