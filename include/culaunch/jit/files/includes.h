// Everything that a source can pull in, and a digest of it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../../version.h"
#include "../base/paths.h"
#include "../base/sha256.h"
#include "../source/expansion.h"
#include "../source/macros.h"
#include "../source/scan.h"
#include "files.h"
#include "footprint.h"
#include "search.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// Follows the includes of a source, whatever the #if around them says. For one source.
class IncludeWalk {
 public:
  explicit IncludeWalk(const Search& search) : search_(search), unknown_(search.unknown) {
    // The digest covers each file's number (in order of first use), its contents, and the numbers
    // of the files that each of its includes leads to. Contents alone are not enough: two equal
    // files in different places may include different ones by the same name.
    if (!search.identity.empty()) facts_.push_back(search.identity);
  }

  // text, path: the source, and where the compiler takes it to be.
  Includes Run(std::string text, const std::string& path) {
    const SharedFile source(new SourceFile(std::move(text)));
    const SourceFile options(search_.defines);
    numbers_[path] = 0;
    nodes_.push_back({path, false, false, source});
    const Node working = {JoinPath(search_.working, "-"), false, false, source};
    for (const std::string& name : search_.forced) Follow(working, name, 0, false);
    for (const FileName& name : options.scan.names) Follow(nodes_[0], name.spelled, 0, false);
    Includes found;
    found.text = VisitAll(0);
    FollowMacros(options);
    AddPlaces();
    std::string facts;
    for (const std::string& fact : facts_) facts.append(facts.empty() ? "" : "\n").append(fact);
    if (!facts.empty()) found.digest = HexDigest(facts);
    for (const std::string& name : memory_order_) {
      found.memory.emplace_back(name, std::move(memory_[name]));
    }
    found.missing = missing_.texts();
    for (const Node& node : nodes_) found.system_files += node.is_system ? 1u : 0u;
    found.footprint = view_.Finish();
    found.unknown = unknown_;
    return found;
  }

 private:
  // A text that is being read.
  struct Node {
    std::string where;  // the path, or the name of an in-memory header
    bool in_memory;
    bool is_system;
    SharedFile file;
  };

  // A text's number; one that is new is visited later.
  size_t Add(const Node& node) {
    const std::string key = node.in_memory ? "<" + node.where + ">" : node.where;
    const auto [known, is_new] = numbers_.emplace(key, nodes_.size());
    if (!is_new) return known->second;
    std::string fact = Number(nodes_.size()) + " is " + node.file->digest;
    if (!node.in_memory) {
      const std::string& same = view_.SameAs(node.where);
      if (same != node.where) fact += " " + Number(numbers_.at(same));
    }
    facts_.push_back(std::move(fact));
    nodes_.push_back(node);
    return nodes_.size() - 1;
  }

  // Visit the files that were added since; return the text of the first of them after rewriting.
  std::string VisitAll(size_t start) {
    std::string first;
    for (size_t i = start; i < nodes_.size(); ++i) {
      const Node node = nodes_[i];
      std::string text = Visit(node, i);
      if (i == start) first = text;
      if (!node.in_memory) continue;
      if (memory_.emplace(node.where, std::move(text)).second) memory_order_.push_back(node.where);
    }
    return first;
  }

  // Follow one text's includes; give it, with names changed where NVRTC needs that.
  std::string Visit(const Node& node, size_t number) {
    const Scan& scan = node.file->scan;
    std::string changed;
    size_t end = 0;
    std::unordered_map<std::string, std::optional<std::string>> followed;
    for (const FileName& name : scan.names) {
      auto known = followed.find(name.spelled);
      if (known == followed.end()) {
        const bool also_behind = scan.next_names.count(name.spelled) != 0;
        known =
            followed.emplace(name.spelled, Follow(node, name.spelled, number, also_behind)).first;
      }
      if (node.in_memory && known->second && *known->second != name.spelled.substr(1)) {
        changed.append(node.file->text, end, name.start - end).append(*known->second);
        end = name.end;
      }
    }
    for (const std::string& spelled : scan.doubtful) {
      Follow(node, spelled, number, scan.next_names.count(spelled) != 0);
    }
    return changed.append(node.file->text, end, std::string::npos);
  }

  // Note where one name can lead; give the in-memory header that it is, if it is one.
  std::optional<std::string> Follow(Node includer, const std::string& spelled, size_t number,
                                    bool also_behind) {
    const std::vector<Node> nodes = Resolve(includer, spelled, also_behind);
    std::string fact = Number(number) + " " + spelled + " ";
    std::optional<std::string> in_memory;
    for (size_t i = 0; i < nodes.size(); ++i) {
      fact.append(i == 0 ? "" : " ").append(Number(Add(nodes[i])));
      if (nodes[i].in_memory && !in_memory) in_memory = nodes[i].where;
    }
    facts_.push_back(nodes.empty() ? fact + "missing" : std::move(fact));
    if (nodes.empty()) missing_.Add(spelled.substr(1));
    return in_memory;
  }

  std::vector<Node> Resolve(const Node& includer, const std::string& spelled, bool also_behind) {
    const bool is_quoted = spelled[0] == '"';
    const std::string name = spelled.substr(1);
    std::vector<Node> found;
    if (is_quoted && includer.in_memory) {
      AddInMemory(NormalPath(JoinPath(DirectoryOf(includer.where), name)), &found);
    }
    if (found.empty()) AddInMemory(name, &found);
    if (IsAbsolute(name)) {
      if (found.empty()) AddOnDisk(name, false, &found);
      return found;
    }
    // NVRTC prefers headers in memory, nvcc what lies beside the file: both count.
    if (is_quoted) {
      const std::string beside = DirectoryOf(includer.where);
      const std::string place = includer.in_memory ? JoinPath(search_.working, beside) : beside;
      AddOnDisk(UpFrom(place, name), includer.is_system, &found);
      for (const std::string& directory : search_.quoted_dirs) {
        if (!found.empty() && !also_behind) return found;
        AddOnDisk(JoinPath(directory, name), search_.own.count(directory) != 0, &found);
      }
    }
    for (const std::string& directory : search_.dirs) {
      if (!found.empty() && !also_behind) return found;
      AddOnDisk(JoinPath(directory, name), search_.own.count(directory) != 0, &found);
    }
    if ((!found.empty() && !also_behind) || !search_.system) return found;
    for (const std::string& directory : search_.system()) {
      if (!found.empty() && !also_behind) return found;
      AddOnDisk(JoinPath(directory, name), true, &found);
    }
    return found;
  }

  // The path of a name beside a file. A "../" leaves a directory again, unless that is a link.
  // Headers that include each other this way would else be new files, under ever longer paths.
  std::string UpFrom(std::string directory, std::string_view name) {
    while (name.substr(0, 3) == "../" && IsPlainDirectory(directory)) {
      directory = DirectoryOf(directory);
      name.remove_prefix(3);
    }
    return JoinPath(directory, name);
  }

  // Whether ".." in a directory is the one that its path names.
  bool IsPlainDirectory(const std::string& path) {
    const std::string name = BaseName(path);
    if (name.empty() || name == "." || name == ".." || DirectoryOf(path).empty()) return false;
    const auto [known, is_new] = plain_.emplace(path, false);
    FileStatus status;
    if (is_new) known->second = lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    return known->second;
  }

  void AddInMemory(const std::string& name, std::vector<Node>* found) {
    const auto header = search_.headers.find(name);
    if (header == search_.headers.end()) return;
    SharedFile& file = scanned_[name];
    if (file == nullptr) file.reset(new SourceFile(std::string(header->second)));
    found->push_back({name, true, false, file});
  }

  void AddOnDisk(const std::string& path, bool is_system, std::vector<Node>* found) {
    if (path.find('\0') != std::string::npos) return;
    SharedFile file = view_.Read(path);
    if (file != nullptr) found->push_back({path, false, is_system, std::move(file)});
  }

  // Follow the names that macros can expand to, until no new files appear.
  void FollowMacros(const SourceFile& options) {
    constexpr int kMostRounds = 50;
    size_t done = std::string::npos;
    std::set<std::pair<size_t, std::string>> asked;
    for (int round = 0; round < kMostRounds; ++round) {
      if (done == nodes_.size()) return;
      done = nodes_.size();
      bool matters = false;
      for (const Node& node : nodes_) {
        matters =
            matters || !node.file->scan.computed.empty() || !node.file->scan.conditions.empty();
      }
      if (!matters) return;
      Macros macros;
      for (const std::string& define : options.scan.defines) macros.Add(define);
      for (const Node& node : nodes_) {
        for (const std::string& define : node.file->scan.defines) macros.Add(define);
      }
      std::map<std::pair<bool, std::string>, std::set<std::string>> answers;
      for (size_t number = 0; number < done; ++number) {
        const Node node = nodes_[number];
        const auto follow = [&](bool is_include, const std::string& text) {
          const auto [known, is_new] = answers.try_emplace({is_include, text});
          if (is_new) known->second = Meant(&macros, is_include, text, node);
          for (const std::string& spelled : known->second) {
            if (!asked.emplace(number, spelled).second) continue;
            // Which of the directive's kinds it was no longer matters: all count.
            Follow(node, spelled, number, true);
          }
        };
        for (const std::string& text : node.file->scan.computed) follow(true, text);
        for (const std::string& text : node.file->scan.conditions) follow(false, text);
      }
      VisitAll(done);
    }
    if (unknown_.empty()) unknown_ = "macros that lead to more and more files";
  }

  std::set<std::string> Meant(Macros* macros, bool is_include, const std::string& text,
                              const Node& node) {
    try {
      return is_include ? macros->Included(text) : macros->Asked(text);
    } catch (const UnknownName&) {
      // The compiler's own headers ask for their own files only, and which they are is pinned by
      // its version.
      if (!node.is_system && unknown_.empty()) {
        unknown_ = (is_include ? "#include " : "#if ") + text;
      }
      return {};
    }
  }

  // Add the paths of the files whose path may be part of the compiled image.
  void AddPlaces() {
    std::vector<const Node*> users;
    bool everywhere = nodes_[0].file->names_caller;
    for (size_t i = 1; i < nodes_.size(); ++i) {
      if (nodes_[i].is_system) continue;
      users.push_back(&nodes_[i]);
      everywhere = everywhere || nodes_[i].file->names_caller;
    }
    if (users.empty()) return;
    Words words;
    if (!everywhere) {
      Macros macros;
      for (const Node& node : nodes_) {
        for (const std::string& define : node.file->scan.defines) macros.Add(define);
      }
      words = macros.LeadingTo(PlaceWords());
    }
    for (const Node* node : users) {
      if (everywhere || HasOneOf(node->file->text, words)) facts_.push_back("at " + node->where);
    }
  }

  static bool HasOneOf(std::string_view text, const Words& words) {
    return AnyWord(text, [&](std::string_view word) {
      return !IsCallerWord(word) && words.count(std::string(word)) != 0;
    });
  }

  static std::string Number(size_t number) {
    return JsonText().Integer(static_cast<int64_t>(number)).text();
  }

  const Search& search_;
  DiskView view_;
  std::vector<std::string> facts_;
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, bool> plain_;  // whether a path is a directory and no link
  std::unordered_map<std::string, SharedFile> scanned_;  // in-memory headers
  std::unordered_map<std::string, std::string> memory_;
  std::vector<std::string> memory_order_;
  OrderedTexts missing_;
  std::string unknown_;
};

inline Includes FollowIncludes(std::string text, const std::string& path, const Search& search) {
  return IncludeWalk(search).Run(std::move(text), path);
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
