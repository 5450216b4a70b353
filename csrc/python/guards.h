// The conditions under which a call needs no Python. Some lists must be empty, such as launch
// hooks. Entries of dicts, such as the globals that a function uses, must be unchanged.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "python/dict_watch.h"
#include "python/python.h"

class Guards {
 public:
  Guards();
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;
  ~Guards();

  bool Hold() {
    Py_ssize_t difference = 0;
    for (const List& one : lists_) difference |= Py_SIZE(one.list) ^ one.size;
    if (CULAUNCH_UNLIKELY(difference != 0)) return false;
    if (CULAUNCH_UNLIKELY(has_more_) && !MoreHold()) return false;
    return AreUnchanged() || Look();
  }

  // Whether no dict has changed since all guards held. Only for guards that are entries.
  bool HasSeenAll() const { return !has_more_ && AreUnchanged(); }

  // The same, but ignore the lists that should be empty: hooks.
  bool AllButHooksHold() {
    for (Py_ssize_t i = hooks_; i < kLists; ++i) {
      if (Py_SIZE(lists_[i].list) != lists_[i].size) return false;
    }
    return (!has_more_ || MoreHold()) && (AreUnchanged() || Look());
  }

  // `guards` has ((dict, name, is present, object), ...): entries of dicts that must be as given.
  // It also has (dict, None, True, names): the dict must have exactly these names in this order.
  // All lists in `hooks` must be empty. `lists` has ((list, size, first item or None), ...), and
  // `cells` has ((cell, object), ...) of closures. False with a Python error set.
  bool Set(PyObject* guards, PyObject* hooks, PyObject* lists, PyObject* cells);

  // For the garbage collector.
  int Traverse(visitproc visit, void* arg) const;
  void Clear();

  // Whether changes of the dicts are detected without looking into them.
  bool is_watched() const { return is_watched_; }

 private:
  // An entry of a dict that must be this object (null: absent).
  struct Entry {
    Ref dict;
    Ref name;      // null: all names of the dict are guarded,
    Ref expected;  // which are this tuple
  };
  struct List {
    PyObject* list;  // owned
    Py_ssize_t size;
  };
  // Guards without a version, which are compared at every call.
  struct Item {
    Ref holder;  // a list, compared by its first item, or a cell
    Ref expected;
  };
  using Entries = std::vector<Entry>;

  // Whether no dict has changed since the entries were last checked.
  bool AreUnchanged() const {
#if CULAUNCH_DICTS_HAVE_VERSIONS
    uint64_t difference = 0;
    for (const Version& one : versions_) difference |= DictVersion(one.dict) ^ one.held;
    return is_watched_ && difference == 0;
#else
    return is_watched_ && held_at_ == g_dict_changes;
#endif
  }
  CULAUNCH_APART bool Look();

  CULAUNCH_APART bool MoreHold() const;

  static constexpr Py_ssize_t kLists = 7;
  List lists_[kLists];
  Py_ssize_t hooks_ = 0;  // how many of them are hooks
  bool has_more_ = false;
#if CULAUNCH_DICTS_HAVE_VERSIONS
  struct Version {
    PyObject* dict;  // of an entry
    uint64_t held;   // when the entries were last checked; 0: never
  };
  std::vector<Version> versions_;
#endif
  uint64_t held_at_ = 0;     // g_dict_changes when the entries were last checked
  bool is_watched_ = false;  // whether all dicts are watched
  std::shared_ptr<const Entries> entries_ = std::make_shared<Entries>();
  std::vector<Item> items_;
};
