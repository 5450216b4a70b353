// The queries of a scan to the disk, and whether they would still have the same answers.
#pragma once

#include <sys/stat.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../../json.h"
#include "../../version.h"
#include "../base/json_text.h"
#include "../base/paths.h"
#include "files.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// A file that was read.
struct FoundFile {
  std::string path;
  std::string digest;
  size_t first = 0;  // the index of the first path that leads to this very file:
                     // for #pragma once
  std::optional<FileIdentity> identity;  // none if it was changed too recently
};

// A directory, and names that were not in it.
struct LackingDirectory {
  std::string path;
  std::optional<FileIdentity> identity;
  std::vector<std::string> names;
};

inline std::optional<FileIdentity> DirectoryIdentity(const std::string& path, int64_t now) {
  FileStatus status;
  if (stat(path.empty() ? "." : path.c_str(), &status) != 0) return std::nullopt;
  return SettledIdentity(status, now);
}

// Files that were read and files that were not there.
struct Footprint {
  std::vector<FoundFile> found;
  std::vector<LackingDirectory> lacking;
  std::vector<std::string> absent;  // no readable file although the name is taken: a directory

  // Look again: whether the same answers come. A file counts as the same by its identity, or else
  // by its contents. Nothing has appeared in a directory whose times are the same: they change with
  // each name in it.
  bool Holds() const {
    std::map<std::pair<uint64_t, uint64_t>, size_t> first;
    for (size_t i = 0; i < found.size(); ++i) {
      FileStatus status;
      if (stat(found[i].path.c_str(), &status) != 0) return false;
      const FileIdentity identity = IdentityOf(status);
      if (first.emplace(std::make_pair(identity.device, identity.inode), i).first->second !=
          found[i].first) {
        return false;
      }
      const bool is_same = found[i].identity && *found[i].identity == identity;
      if (!is_same && FileDigest(found[i].path) != found[i].digest) return false;
    }
    const int64_t now = NowNanoseconds();
    for (const LackingDirectory& one : lacking) {
      const std::optional<FileIdentity> settled = DirectoryIdentity(one.path, now);
      if (settled && one.identity && *settled == *one.identity) continue;
      for (const std::string& name : one.names) {
        if (IsThere(JoinPath(one.path, name))) return false;
      }
    }
    for (const std::string& path : absent) {
      if (IsFile(path)) return false;
    }
    return true;
  }

  // What Write() wrote; the reader is not ok() after anything else.
  static Footprint Read(culaunch::detail::JsonReader* json) {
    Footprint read;
    const auto identity = [&]() -> std::optional<FileIdentity> {
      if (json->IsNull()) return std::nullopt;
      FileIdentity one;
      json->Open();
      one.device = static_cast<uint64_t>(json->Integer());
      json->Comma();
      one.inode = static_cast<uint64_t>(json->Integer());
      for (int64_t* const number : {&one.size, &one.modified, &one.changed}) {
        json->Comma();
        *number = json->Integer();
      }
      json->Close();
      return one;
    };
    json->Open();
    json->Array([&] {
      FoundFile one;
      json->Open();
      one.path = json->String();
      json->Comma();
      one.digest = json->String();
      json->Comma();
      one.first = static_cast<size_t>(json->Integer());
      json->Comma();
      one.identity = identity();
      json->Close();
      read.found.push_back(std::move(one));
    });
    json->Comma();
    json->Array([&] {
      LackingDirectory one;
      json->Open();
      one.path = json->String();
      json->Comma();
      one.identity = identity();
      json->Comma();
      json->Array([&] { one.names.push_back(json->String()); });
      json->Close();
      read.lacking.push_back(std::move(one));
    });
    json->Comma();
    json->Array([&] { read.absent.push_back(json->String()); });
    json->Close();
    return read;
  }

  // In the form of the cache's notes.
  void Write(JsonText* json) const {
    const auto identity = [&](const std::optional<FileIdentity>& one) {
      if (!one) {
        json->Null();
        return;
      }
      json->Open('[').Integer(static_cast<int64_t>(one->device));
      json->Integer(static_cast<int64_t>(one->inode)).Integer(one->size);
      json->Integer(one->modified).Integer(one->changed).Close(']');
    };
    json->Open('[').Open('[');
    for (const FoundFile& one : found) {
      json->Open('[').String(one.path).String(one.digest).Integer(static_cast<int64_t>(one.first));
      identity(one.identity);
      json->Close(']');
    }
    json->Close(']').Open('[');
    for (const LackingDirectory& one : lacking) {
      json->Open('[').String(one.path);
      identity(one.identity);
      json->Strings(one.names).Close(']');
    }
    json->Close(']').Strings(absent).Close(']');
  }
};

// The disk, with a note of every question.
class DiskView {
 public:
  // A file, or null if no regular file of this path can be read.
  SharedFile Read(const std::string& path) {
    const auto known = files_.find(path);
    if (known != files_.end()) return known->second.file;
    Answer& answer = files_[path];
    order_.push_back(path);
    std::optional<ReadResult> read = ReadSource(path);
    if (!read) return nullptr;
    const auto key = std::make_pair(uint64_t{read->status.st_dev}, uint64_t{read->status.st_ino});
    answer.first = first_.emplace(key, found_.size()).first->second;
    answer.file = read->file;
    found_.push_back({path, read->file->digest, answer.first, read->settled});
    return answer.file;
  }

  // The first path that led to the file that this path leads to; it was read.
  const std::string& SameAs(const std::string& path) const {
    return found_[files_.at(path).first].path;
  }

  // The queries and answers so far.
  Footprint Finish() const {
    Footprint footprint;
    footprint.found = found_;
    const int64_t now = NowNanoseconds();
    // Each directory's times are taken before its names are looked for once more.
    std::unordered_map<std::string, bool> is_directory;
    std::map<std::string, std::pair<std::optional<FileIdentity>, std::set<std::string>>> lacking;
    for (const std::string& path : order_) {
      if (files_.at(path).file != nullptr) continue;
      auto [parent, name] = SplitPath(path);
      for (;;) {
        const auto known = is_directory.emplace(parent, false);
        if (known.second) {
          known.first->second = parent.empty() || parent == "/" || IsDirectory(parent);
        }
        if (known.first->second) break;
        auto above = SplitPath(parent);
        parent = std::move(above.first);
        name = std::move(above.second);
      }
      const auto entry = lacking.find(parent);
      if (entry != lacking.end() && entry->second.second.count(name) != 0) continue;
      auto& directory = lacking[parent];
      if (entry == lacking.end()) directory.first = DirectoryIdentity(parent, now);
      if (name.empty() || name == "." || name == ".." || IsThere(JoinPath(parent, name))) {
        footprint.absent.push_back(path);
      } else {
        directory.second.insert(name);
      }
    }
    for (auto& [path, entry] : lacking) {
      if (entry.second.empty()) continue;
      footprint.lacking.push_back({path, entry.first, {entry.second.begin(), entry.second.end()}});
    }
    return footprint;
  }

 private:
  struct Answer {
    SharedFile file;  // null if there was none
    size_t first = 0;
  };

  std::unordered_map<std::string, Answer> files_;
  std::vector<std::string> order_;
  std::map<std::pair<uint64_t, uint64_t>, size_t> first_;
  std::vector<FoundFile> found_;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
