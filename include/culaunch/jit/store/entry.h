// The bytes of one entry of the cache; docs/cache.md specifies them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "../../json.h"
#include "../../text.h"
#include "../../version.h"
#include "../base/json_text.h"
#include "../base/sha256.h"
#include "image.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// An entry whose contents are not as written; `why` continues "the entry ...".
struct BadEntry {
  std::string why;
};

constexpr size_t kEntryHead = 24;  // magic, version, the two lengths
constexpr size_t kEntryBody = kEntryHead + 32;

inline std::string EntryDigest(std::string_view key, std::string_view head, std::string_view body) {
  return Sha256().Add(head).Add(key).Add(body).Bytes();
}

// metadata: JSON; data: the stored bytes.
inline std::string PackEntry(std::string_view key, std::string_view metadata,
                             std::string_view data) {
  std::string head = "culcache";
  const auto append = [&](uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) head += static_cast<char>(value >> (8 * i) & 255);
  };
  append(1, 4);
  append(metadata.size(), 4);
  append(data.size(), 8);
  const std::string body = std::string(metadata).append(data);
  return head + EntryDigest(key, head, body) + body;
}

// The metadata and the data, after the whole entry was checked. The digest is checked before the
// metadata: no parser gets bytes from a broken disk or an attacker.
inline std::pair<std::string, std::string> UnpackEntry(std::string_view key,
                                                       std::string_view entry) {
  const auto number = [&](size_t at, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = bytes; i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(entry[at + i]);
    }
    return value;
  };
  if (entry.size() < kEntryBody) {
    throw BadEntry{"is truncated to " + detail::ToText(entry.size()) + " bytes"};
  }
  if (entry.substr(0, 8) != "culcache" || number(8, 4) != 1) {
    throw BadEntry{"is not a cache entry of this version"};
  }
  const uint64_t metadata = number(12, 4);
  const uint64_t data = number(16, 8);
  if (metadata > entry.size() - kEntryBody || entry.size() - kEntryBody - metadata != data) {
    throw BadEntry{"has a wrong length"};
  }
  const std::string_view body = entry.substr(kEntryBody);
  if (EntryDigest(key, entry.substr(0, kEntryHead), body) != entry.substr(kEntryHead, 32)) {
    throw BadEntry{"does not match its SHA-256"};
  }
  return {std::string(body.substr(0, metadata)), std::string(body.substr(metadata))};
}

inline void WriteTypes(const Image::Signature& types, JsonText* json) {
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

inline std::string PackImage(std::string_view key, const Image& image) {
  JsonText json(",", ":");
  json.Open('{').Key("names").Open('{');
  for (const auto& [name, lowered] : image.names) json.Key(name).String(lowered);
  json.Close('}').Key("signatures").Open('{');
  for (const auto& [kernel, types] : image.signatures) {
    json.Key(kernel);
    WriteTypes(types, &json);
  }
  json.Close('}').Key("log").String(image.log).Close('}');
  return PackEntry(key, json.text(), image.data);
}

inline Image UnpackImage(std::string_view key, std::string_view entry) {
  auto [metadata, data] = UnpackEntry(key, entry);
  Image image;
  image.data = std::move(data);
  unsigned found = 0;
  detail::JsonReader json(metadata);
  json.Object([&](const std::string& member) {
    if (member == "names") {
      json.Object([&](const std::string& name) {
        std::string lowered = json.String();
        image.names.emplace_back(name, std::move(lowered));
      });
    } else if (member == "signatures") {
      json.Object([&](const std::string& kernel) {
        Image::Signature types;
        json.Array([&] { types.push_back(json.IsNull() ? std::string() : json.String()); });
        image.signatures.emplace_back(kernel, std::move(types));
      });
    } else if (member == "log") {
      image.log = json.String();
    } else {
      json.Skip();
      return;
    }
    ++found;
  });
  json.End();
  // The digest is right: the writer used another definition of an entry.
  if (!json.ok() || found != 3) throw BadEntry{"has invalid metadata"};
  return image;
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
