// One compilation: the checked request, its key, and its image, from the cache or new.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../error.h"
#include "../json.h"
#include "../version.h"
#include "files/includes.h"
#include "options.h"
#include "session.h"
#include "store/image.h"
#include "store/key.h"
#include "toolkit/architectures.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

class Request {
 public:
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  Request(Session* session, SourceText source, const std::vector<std::string>& names,
          const CompileOptions& given, bool may_be_unloadable)
      : session_(*session), options_(given), text_(std::move(source)) {
    const CompileOptions& options = options_.get();
    const bool is_linkable = options.relocatable || options.lto;
    if (is_linkable && !may_be_unloadable) {
      throw Error(
          "an image of relocatable or lto must be linked before it is loaded; Compile() "
          "returns it");
    }
    if (Stripped(text_.text).empty()) throw Error("source is empty; give a kernel's text");
    if (text_.text.find('\0') != std::string::npos) {
      throw Error("source is not text: it has a null byte");
    }
    job_.name = options.name.empty() ? "kernel.cu" : options.name;
    if (job_.name.find_first_of(std::string_view("\n\0", 2)) != std::string::npos) {
      throw Error("name must be a file name for messages (got \"" + job_.name + "\")");
    }
    for (const std::string& name : names) {
      if (Stripped(name).empty() ||
          name.find_first_of(std::string_view("\n\0", 2)) != std::string::npos) {
        throw Error("names has \"" + name + "\", which is not a name expression");
      }
      if (std::find(job_.names.begin(), job_.names.end(), name) == job_.names.end()) {
        job_.names.push_back(name);
      }
    }
    job_.directory = text_.directory;
    job_.flags = options_.NvrtcFlags();
    job_.lto = options.lto;
    job_.shows_paths = options.debug || options.line_info;
    job_.pch = options.pch;
    {
      const std::lock_guard<std::mutex> lock(session_.mutex);
      headers_ = session_.headers;
      if (session_.dirs) job_.include_dirs = *session_.dirs;
    }
    for (const std::string& directory : options.include_dirs) {
      job_.include_dirs.push_back(CheckedDirectory(directory));
    }
    archs_ = ResolveArchs(options.arch, !is_linkable);
    source_digest_ = HexDigest(text_.text);
    MakeSearch();
  }

  std::string Key(const std::string& includes_digest) const {
    KeyParts parts;
    parts.backend = "nvrtc";
    parts.identity = session_.Compiler().Identity();
    parts.archs = archs_;
    parts.source_digest = source_digest_;
    parts.name = job_.name;
    parts.includes_digest = includes_digest;
    parts.flags = job_.flags;
    parts.names = job_.names;
    parts.lto = job_.lto;
    if (job_.shows_paths) {
      parts.dirs.emplace();
      parts.dirs->push_back(job_.directory);
      for (const std::string& one : job_.include_dirs) parts.dirs->push_back(one);
    }
    return CacheKey(std::move(parts));
  }

  // The digest of the headers without following them, if they are as they were.
  std::optional<std::string> Recall() {
    if (is_alone_) return std::nullopt;
    const std::string key = NoteKey();
    std::shared_ptr<const Session::Known> known;
    {
      const std::lock_guard<std::mutex> lock(session_.mutex);
      const auto found = session_.known.find(key);
      if (found != session_.known.end()) known = found->second;
    }
    // The disk is looked at without the lock: other threads go on meanwhile.
    if (known != nullptr && known->footprint.Holds()) return known->digest;
    const std::optional<std::string> note = session_.cache.ReadNote(key);
    known = note ? ReadNote(*note) : nullptr;
    if (known == nullptr || !known->footprint.Holds()) return std::nullopt;
    const std::lock_guard<std::mutex> lock(session_.mutex);
    session_.known[key] = known;
    return known->digest;
  }

  // Follow the headers, and note the result.
  const Includes& Follow() {
    job_.includes = FollowIncludes(text_.text, job_.Place(), search_);
    if (!is_alone_ && job_.includes.unknown.empty()) Remember();
    return job_.includes;
  }

  std::string IncludesDigest() {
    const std::optional<std::string> known = Recall();
    return known ? *known : Follow().digest;
  }

  // Take the image from the cache, or make and keep it.
  Image FindImage() {
    if (const std::optional<std::string> digest = Recall()) {
      if (std::optional<Image> image = session_.cache.Lookup(Key(*digest)))
        return *std::move(image);
    }
    const Includes& includes = Follow();
    // If the text does not determine the files that it reads, the image is compiled every time and
    // not cached.
    if (!includes.unknown.empty() || !session_.cache.enabled()) return Build();
    struct NotToBeKept {
      Image image;
    };
    try {
      return session_.cache.GetOrMake(Key(includes.digest), [&] {
        Image image = Build();
        // The compiler may have read newer files than those in the key.
        if (!includes.footprint.Holds()) throw NotToBeKept{std::move(image)};
        return image;
      });
    } catch (NotToBeKept& made) {
      return std::move(made.image);
    }
  }

 private:
  Image Build() { return session_.Compiler().Build(job_, archs_); }

  void MakeSearch() {
    if (headers_) {
      for (const auto& [name, text] : headers_->texts) search_.headers.emplace(name, text);
    }
    search_.dirs = job_.include_dirs;
    search_.system = [this]() -> const std::vector<std::string>& {
      return session_.Compiler().Toolkit().dirs;
    };
    search_.working = CurrentDirectory();
    search_.forced = options_.ForcedIncludes();
    search_.defines = options_.DefineLines();
    // No file but the source itself can matter.
    is_alone_ = ScanText(text_.text).IsEmpty() && search_.forced.empty() &&
                ScanText(search_.defines).IsEmpty();
  }

  std::string NoteKey() const {
    return IncludesKey(source_digest_, job_.Place(),
                       headers_ ? headers_->digest : HeadersDigest({}), search_,
                       session_.Compiler().Toolkit().dirs);
  }

  void Remember() {
    // If the scan is faster than reading a note of it, write no note.
    constexpr size_t kFewFiles = 4;
    const std::string key = NoteKey();
    {
      const std::lock_guard<std::mutex> lock(session_.mutex);
      session_.known[key].reset(new Session::Known{job_.includes.digest, job_.includes.footprint});
    }
    if (job_.includes.footprint.found.size() <= kFewFiles) return;
    JsonText json(",", ":");
    json.Open('{').Key("result").String(job_.includes.digest).Key("reads");
    job_.includes.footprint.Write(&json);
    session_.cache.KeepNote(key, json.Close('}').text());
  }

  static std::shared_ptr<const Session::Known> ReadNote(const std::string& metadata) {
    std::shared_ptr<Session::Known> known(new Session::Known);
    bool has_reads = false;
    detail::JsonReader json(metadata);
    json.Object([&](const std::string& member) {
      if (member == "result") {
        known->digest = json.String();
      } else if (member == "reads") {
        known->footprint = Footprint::Read(&json);
        has_reads = true;
      } else {
        json.Skip();
      }
    });
    json.End();
    if (!json.ok() || known->digest.empty() || !has_reads) return nullptr;
    return known;
  }

  Session& session_;
  NormalOptions options_;
  SourceText text_;
  Job job_;
  std::shared_ptr<const MemoryHeaders> headers_;
  std::vector<std::string> archs_;
  std::string source_digest_;
  Search search_;
  bool is_alone_ = false;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
