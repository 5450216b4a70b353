// Whether calls of a kernel bring their keywords in a dict.
//
// CPython calls with a dict if a call has more than about 15 keywords, or **keywords. For a callee
// with a vectorcall, it unpacks the dict, into an array and a tuple of names that is new each time.
// That costs as much as reading the arguments. Therefore the launchers of kernels that are called
// like that take the dict themselves.
#pragma once

#include <algorithm>

#include "python/python.h"

namespace triton {

class KeywordStyle {
 public:
  bool has_dicts() const { return has_dicts_; }

  // A vectorcall had a known form's names, but in a new tuple.
  void NoteOtherNames(PyObject* names) {
#ifndef Py_GIL_DISABLED
    // A known tuple is a constant of the calling program. Such tuples are kept, so a new tuple
    // cannot have the address of one of them.
    const bool came_before =
        std::any_of(seen_, seen_ + kSeen, [&](const Ref& one) { return one.get() == names; });
    new_names_ = came_before ? 0 : new_names_ + 1;
    if (came_before) return;
    seen_[next_] = Ref::Borrow(names);
    next_ = (next_ + 1) % kSeen;
    if (new_names_ < 2 * kSeen) return;
    has_dicts_ = true;
    for (Ref& one : seen_) one = Ref();
#else
    (void)names;
#endif
  }

  // A call passed a dict. The style is checked again from time to time, because CPython makes a
  // dict for a callee that takes one.
  void NoteDict() {
    constexpr unsigned kLooks = 4096;
    if (++dicts_ % kLooks != 0) return;
    has_dicts_ = false;
    new_names_ = 0;
  }

 private:
  static constexpr unsigned kSeen = 4;
  bool has_dicts_ = false;
  unsigned new_names_ = 0;  // how many new tuples came in a row
  unsigned dicts_ = 0;
  unsigned next_ = 0;
  Ref seen_[kSeen];
};

}  // namespace triton
