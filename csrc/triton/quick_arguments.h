// The arguments of a quick call, by parameter: what a grid that is a function is asked with.
#pragma once

#include "triton/found.h"
#include "triton/grid_memo.h"
#include "triton/state.h"

namespace triton {

// Which argument a parameter's value is; -1 where there is none.
int ArgumentOf(PyObject* name, size_t index, size_t count, PyObject* keyword_names);

// Whether two calls name the same arguments in the same order; null: a call names none. CPython
// makes a new tuple of names for each call with many keywords, and for each call with ** of a dict.
bool AreSameNames(PyObject* one, PyObject* other);

// A chosen value takes precedence over a given one, and a default comes last. `found` is null if
// its variant does not affect the function's input.
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
