// Kernels and their parameters, read from images.
#include <cctype>
#include <cstdint>
#include <cstring>

#include "internal.h"

namespace fake {
namespace {

template <class T>
T Read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// ".param .u64 k_param_0" or ".param .align 8 .b8 k_param_1[24]"
Param ReadParam(const std::string& text, size_t offset) {
  size_t align = 0, size = 0, count = 1;
  for (size_t at = 0; (at = text.find('.', at)) != std::string::npos;) {
    const size_t end = text.find_first_of(" \t\n", ++at);
    const std::string word = text.substr(at, end - at);
    if (word == "align") {
      align = std::stoul(text.substr(at + 5));
    } else if (word.size() > 1 && std::strchr("usfb", word[0]) != nullptr &&
               std::isdigit(word[1])) {
      size = std::stoul(word.substr(1)) / 8;
    }
  }
  if (const size_t open = text.find('['); open != std::string::npos) {
    count = std::stoul(text.substr(open + 1));
  }
  if (align == 0) align = size;
  return {(offset + align - 1) / align * align, size * count};
}

void ReadPtx(const std::string& text, std::vector<KernelInfo>* kernels) {
  for (size_t at = 0; (at = text.find(".entry", at)) != std::string::npos;) {
    const size_t name = text.find_first_not_of(" \t\n", at + 6);
    const size_t name_end = text.find_first_of(" \t\n({", name);
    KernelInfo kernel{text.substr(name, name_end - name), {}};
    const size_t open = text.find_first_not_of(" \t\n", name_end);
    at = name_end;
    if (text[open] == '(') {
      const size_t close = text.find(')', open);
      for (size_t param = open; (param = text.find(".param", param)) < close;) {
        const size_t end = std::min(text.find(',', param), close);
        const size_t last =
            kernel.params.empty() ? 0 : kernel.params.back().offset + kernel.params.back().size;
        kernel.params.push_back(ReadParam(text.substr(param + 6, end - param - 6), last));
        param = end;
      }
      at = close;
    }
    kernels->push_back(kernel);
  }
}

// Sections .nv.info.<kernel> hold records (u8 format, u8 attribute, u16 size or value). Parameters
// have 0x17 (u32, u16 ordinal, u16 offset, u32 with the size from bit 18) and 0x45.
void ReadCubin(const char* image, std::vector<KernelInfo>* kernels) {
  const char* sections = image + Read<uint64_t>(image + 40);
  const auto count = Read<uint16_t>(image + 60);
  const auto at = [&](unsigned i) { return sections + 64 * i; };
  const char* names = image + Read<uint64_t>(at(Read<uint16_t>(image + 62)) + 24);
  for (unsigned i = 0; i < count; ++i) {
    const std::string name = names + Read<uint32_t>(at(i));
    if (name.compare(0, 9, ".nv.info.") != 0) continue;
    KernelInfo kernel{name.substr(9), {}};
    const char* data = image + Read<uint64_t>(at(i) + 24);
    const char* end = data + Read<uint64_t>(at(i) + 32);
    while (data < end) {
      const auto attribute = Read<uint8_t>(data + 1);
      const char* payload = data + 4;
      if (attribute == 0x17 || attribute == 0x45) {
        const auto ordinal = Read<uint16_t>(payload + 4);
        if (kernel.params.size() <= ordinal) kernel.params.resize(ordinal + 1u);
        kernel.params[ordinal] = {
            Read<uint16_t>(payload + 6),
            attribute == 0x17 ? Read<uint32_t>(payload + 8) >> 18 : Read<uint16_t>(payload + 8)};
      }
      data = payload + (Read<uint8_t>(data) == 4 ? Read<uint16_t>(data + 2) : 0);
    }
    kernels->push_back(kernel);
  }
}

// The first cubin of a fatbin: entries have their kind at 0, their header's size at 4, their
// payload's at 8 and 0 at 16 when it is not compressed.
const char* CubinOf(const char* fatbin) {
  const char* entry = fatbin + Read<uint16_t>(fatbin + 6);
  const char* end = entry + Read<uint64_t>(fatbin + 8);
  while (entry < end) {
    const char* payload = entry + Read<uint32_t>(entry + 4);
    if (Read<uint16_t>(entry) == 2 && Read<uint32_t>(payload) == 0x464c457f) return payload;
    entry = payload + Read<uint64_t>(entry + 8);
  }
  return nullptr;
}

}  // namespace

bool ReadImage(const void* image, std::vector<KernelInfo>* kernels) {
  const char* bytes = static_cast<const char*>(image);
  if (Read<uint32_t>(bytes) == 0xba55ed50) bytes = CubinOf(bytes);
  if (bytes == nullptr) return false;
  if (Read<uint32_t>(bytes) == 0x464c457f) {
    ReadCubin(bytes, kernels);
    return true;
  }
  if (std::strstr(bytes, ".version") == nullptr) return false;
  ReadPtx(bytes, kernels);
  return true;
}

}  // namespace fake
