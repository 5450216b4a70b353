// The arguments of a quick call by parameter, as a grid function receives them.
#pragma once

#include "triton/dispatchers/state.h"
#include "triton/grids/grid_memo.h"
#include "triton/variants/quick_variant.h"

namespace triton {

// The index of the argument for a parameter; -1 if there is none.
int ArgumentOf(PyObject* name, size_t index, size_t count, PyObject* keyword_names);

// Whether two calls name the same arguments in the same order; null: no names. CPython makes a new
// tuple of names for each call with many keywords, or with a ** dict.
bool AreSameNames(PyObject* one, PyObject* other);

// A chosen value takes precedence over a given one, and a default comes last. `found` is null if
// its variant does not affect the function's input.
class QuickArguments final : public ArgumentsOfCall {
 public:
  QuickArguments(const State& state, PyObject* const* args, size_t count, PyObject* keyword_names,
                 const QuickVariant* found)
      : state_(state), args_(args), count_(count), keyword_names_(keyword_names), found_(found) {}

  PyObject* operator[](size_t parameter) const override;

  // Call a grid function with the arguments by name. False with a Python error set, or without one
  // if an argument is missing.
  bool Ask(PyObject* grid, uint32_t* dims) const;

 private:
  PyObject* Chosen(size_t parameter) const;

  const State& state_;
  PyObject* const* args_;
  size_t count_;
  PyObject* keyword_names_;
  const QuickVariant* found_;
};

}  // namespace triton
