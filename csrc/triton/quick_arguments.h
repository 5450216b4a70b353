// The arguments of a quick call, by parameter: what a grid that is a function is asked with.
#pragma once

#include "triton/found.h"
#include "triton/grid_memo.h"
#include "triton/state.h"

namespace triton {

// Which argument a parameter's value is; -1 where there is none.
int ArgumentOf(PyObject* name, size_t index, size_t count, PyObject* keyword_names);

// Whether two calls name the same arguments in the same order; null: a call names none. CPython
// makes the tuple of names anew for each call with many keywords, and for each with ** of a dict.
bool AreSameNames(PyObject* one, PyObject* other);

// What was chosen stands before what was given, and a default behind it. `found` is null where its
// variant has no say in what the function is given.
class QuickArguments final : public ArgumentsOfCall {
 public:
  QuickArguments(const State& state, PyObject* const* args, size_t count, PyObject* keyword_names,
                 const Found* found)
      : state_(state), args_(args), count_(count), keyword_names_(keyword_names), found_(found) {}

  PyObject* operator[](size_t parameter) const override;

  // Ask a grid, with the arguments by name. False with a Python error set, or without one where an
  // argument is missing.
  bool Ask(PyObject* grid, uint32_t* dims) const;

 private:
  PyObject* Chosen(size_t parameter) const;

  const State& state_;
  PyObject* const* args_;
  size_t count_;
  PyObject* keyword_names_;
  const Found* found_;
};

}  // namespace triton
