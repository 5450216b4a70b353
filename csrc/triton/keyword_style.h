// Whether the calls of a kernel bring their keywords in a dict.
//
// CPython calls with a dict if a call has more than some 15 keywords, or **keywords. A callee with
// a vectorcall gets it unpacked, into an array and a tuple of names that is new each time. That
// costs as much as reading the arguments. Therefore the launchers of kernels that are called like
// that take the dict themselves.
#pragma once

#include <algorithm>

#include "python/python.h"

namespace triton {

class KeywordStyle {
 public:
  bool has_dicts() const { return has_dicts_; }

  // A vectorcall came with names that are those of a form, in another tuple.
  void NoteOtherNames(PyObject* names) {
#ifndef Py_GIL_DISABLED
    // A tuple that came before is a constant of another place in the calling program. They are
    // kept, so no new tuple has the address of one of them.
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

  // A call came with a dict. Now and then it is looked again how they come: CPython makes a dict
  // for who takes one.
  void NoteDict() {
    constexpr unsigned kLooks = 4096;
    if (++dicts_ % kLooks != 0) return;
    has_dicts_ = false;
    new_names_ = 0;
  }

 private:
  static constexpr unsigned kSeen = 4;
  bool has_dicts_ = false;
  unsigned new_names_ = 0;  // how many in a row had not come before
  unsigned dicts_ = 0;
  unsigned next_ = 0;
  Ref seen_[kSeen];
};

}  // namespace triton
