// Several images to one finished image, by nvJitLink.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../error.h"
#include "../image_check.h"
#include "../text.h"
#include "../version.h"
#include "base/json_text.h"
#include "base/sha256.h"
#include "compile_error.h"
#include "link_input.h"
#include "link_options.h"
#include "program.h"
#include "source/option_words.h"
#include "store/entry.h"
#include "toolkit/architectures.h"
#include "toolkit/fatbin.h"
#include "toolkit/nvjitlink_api.h"
#include "toolkit/nvrtc_api.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// An nvJitLink. Safe to use from many threads.
class Linker {
 public:
  // nvjitlink: its path, a directory that contains it, or empty. first: directories that are
  // searched first, such as NVRTC's.
  Linker(const std::string& nvjitlink, const std::vector<std::string>& first)
      : library_(NvJitLinkLibrary(), nvjitlink, first), api_(&library_) {
    unsigned major = 0;
    unsigned minor = 0;
    api_.Version(&major, &minor);
    version_ = "nvJitLink " + detail::ToText(major) + "." + detail::ToText(minor);
    identity_ = version_ + " " + BuildIdentity(library_.path());
  }

  const std::string& path() const noexcept { return library_.path(); }
  const std::string& version() const noexcept { return version_; }
  // The identity of this build.
  const std::string& identity() const noexcept { return identity_; }

  // The image for one architecture, "sm_90" or, from LTO-IR, "compute_90". Threads link side by
  // side.
  CompiledPart Link(const std::vector<LinkPart>& parts, const std::string& arch,
                    const std::vector<std::string>& options, std::string* log) const {
    const NvJitLinkApi& api = api_;
    const bool to_ptx = StartsWith(arch, "compute_");
    std::vector<std::string> words = {"-arch=sm_" + arch.substr(arch.find('_') + 1)};
    words.insert(words.end(), options.begin(), options.end());
    if (to_ptx) words.emplace_back("-ptx");
    std::string spelled;
    std::vector<const char*> pointers;
    for (const std::string& word : words) {
      spelled.append(spelled.empty() ? "" : " ").append(word);
      pointers.push_back(word.c_str());
    }
    // Destroyed however this ends.
    struct Open {
      const NvJitLinkApi& api;
      NvJitLinkHandle handle = nullptr;
      ~Open() {
        if (handle != nullptr) api.Destroy(&handle);
      }
    } open{api};
    int status = api.Create(&open.handle, static_cast<uint32_t>(pointers.size()), pointers.data());
    if (status != 0) {
      throw CompileError(version_ + " refused " + spelled + ": " + NvJitLinkApi::ErrorName(status) +
                             "; check that it knows the architecture and the options",
                         "");
    }
    for (const LinkPart& part : parts) {
      if (status != 0) break;
      status = api.AddData(open.handle, static_cast<int>(part.kind), part.image.data.data(),
                           part.image.data.size(), part.where.c_str());
    }
    if (status == 0) status = api.Complete(open.handle);
    CompiledPart made;
    made.arch = arch;
    made.kind = to_ptx ? CompiledPart::Kind::kPtx : CompiledPart::Kind::kCubin;
    if (status == 0) status = (to_ptx ? api.ptx : api.cubin).Read(open.handle, &made.data);
    if (status == 0) {
      api.info_log.Read(open.handle, log);
      *log = Decoded(*log);
      return made;
    }
    std::string said;
    api.error_log.Read(open.handle, &said);
    said = Decoded(said);
    if (said.empty()) said = NvJitLinkApi::ErrorName(status);
    throw CompileError("linking for " + arch + " failed: " + said.substr(0, said.find('\n')) +
                           "\noptions: " + spelled + "\nnvJitLink says:\n" + said,
                       said);
  }

 private:
  SharedCudaLibrary library_;
  NvJitLinkApi api_;
  std::string version_;
  std::string identity_;
};

// One link: the checked request, its key, and its image.
class LinkRequest {
 public:
  LinkRequest(Linker* linker, const std::vector<LinkInput>& inputs, const LinkOptions& given)
      : linker_(*linker) {
    if (inputs.empty()) throw Error("there is nothing to link: give at least one image");
    bool is_all_lto = true;
    bool is_any_lto = false;
    for (const LinkInput& input : inputs) {
      parts_.push_back(ReadLinkPart(input, parts_.size()));
      is_all_lto = is_all_lto && parts_.back().is_lto;
      is_any_lto = is_any_lto || parts_.back().is_lto;
    }
    // Machine code is for a device of this machine; PTX may be for any device.
    const bool is_for_the_device = given.arch.empty() && !is_all_lto;
    archs_ = ResolveArchs(is_for_the_device ? std::vector<std::string>{"native"} : given.arch,
                          is_all_lto);
    for (const std::string& arch : archs_) {
      if (is_all_lto || !IsVirtual(arch)) continue;
      throw Error((given.arch.empty() ? std::string("the emulator executes PTX")
                                      : "arch has \"" + arch + "\"") +
                  ": only images compiled with lto can be linked to PTX; compile all of " +
                  "them so, or name an architecture sm_...");
    }
    if (given.maxrregcount < 0 || given.maxrregcount > 255) {
      throw Error("maxrregcount must be in 1 to 255, or 0 for the linker's choice (got " +
                  detail::ToText(given.maxrregcount) + ")");
    }
    for (const std::string& option : given.extra_options) CheckOption(option);
    if (given.debug) options_.emplace_back("-g");
    if (given.line_info) options_.emplace_back("-lineinfo");
    if (given.maxrregcount != 0) {
      options_.push_back("-maxrregcount=" + detail::ToText(given.maxrregcount));
    }
    if (is_any_lto) options_.emplace_back("-lto");
    options_.insert(options_.end(), given.extra_options.begin(), given.extra_options.end());
    for (const LinkPart& part : parts_) {
      for (const auto& [name, lowered] : part.image.names) Set(name, lowered, &linked_.names);
      for (const auto& [kernel, types] : part.image.signatures) {
        Set(kernel, types, &linked_.signatures);
      }
    }
  }
  LinkRequest(const LinkRequest&) = delete;
  LinkRequest& operator=(const LinkRequest&) = delete;

  // The same as Python's for the same request.
  std::string Key() const {
    // Changes whenever the same key would mean a different image, or a different key the same
    // image.
    constexpr int64_t kSchema = 1;
    JsonText json;
    json.Open('[').Integer(kSchema).String("link").String(linker_.identity());
    json.Strings(archs_).Strings(options_).Open('{');
    const std::map<std::string, std::string> names(linked_.names.begin(), linked_.names.end());
    for (const auto& [name, lowered] : names) json.Key(name).String(lowered);
    json.Close('}').Open('{');
    const std::map<std::string, Image::Signature> signatures(linked_.signatures.begin(),
                                                             linked_.signatures.end());
    for (const auto& [kernel, types] : signatures) {
      json.Key(kernel);
      WriteTypes(types, &json);
    }
    Sha256 digest;
    digest.Add(json.Close('}').Close(']').text());
    for (const LinkPart& part : parts_) {
      const std::string& bytes = part.image.data;
      digest.Add(std::string(part.KindName()) + " " + detail::ToText(bytes.size()) + "\n");
      digest.Add(bytes);
    }
    return digest.Hex();
  }

  Image Build() {
    CheckDuplicates(parts_);
    std::vector<CompiledPart> made;
    std::set<std::string> logs;
    for (const std::string& arch : archs_) {
      std::string log;
      made.push_back(linker_.Link(parts_, arch, options_, &log));
      if (log.empty() || !logs.insert(log).second) continue;
      linked_.log.append(linked_.log.empty() ? "" : "\n").append(log);
    }
    linked_.data = made.size() == 1 ? std::move(made[0].data)
                                    : CombineParts(made, "linked", {DirectoryOf(linker_.path())});
    ImageFormat format{};
    const Status checked = CheckImage(linked_.data.data(), linked_.data.size(), &format);
    if (!checked) {
      throw CompileError(std::string("nvJitLink reported success and made an image that cannot be "
                                     "read: ") +
                             checked.what(),
                         linked_.log);
    }
    return linked_;
  }

 private:
  static bool IsVirtual(const std::string& arch) { return StartsWith(arch, "compute_"); }

  // The last option with a name counts, and replaces the first.
  template <class Value>
  static void Set(const std::string& name, const Value& value,
                  std::vector<std::pair<std::string, Value>>* values) {
    const auto known = std::find_if(values->begin(), values->end(),
                                    [&](const auto& one) { return one.first == name; });
    if (known != values->end()) {
      known->second = value;
    } else {
      values->emplace_back(name, value);
    }
  }

  Linker& linker_;
  std::vector<LinkPart> parts_;
  std::vector<std::string> archs_;
  std::vector<std::string> options_;
  Image linked_;
};

}  // namespace jit

CULAUNCH_NAMESPACE_END
