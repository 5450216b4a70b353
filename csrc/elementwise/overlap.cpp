// Whether the arrays of a call share memory.
#include <algorithm>

#include "elementwise/call.h"
#include "python/upcalls.h"

namespace elementwise {

namespace {

// Whether two arrays of any shapes may share memory. *exact: they have the same elements in the
// same places.
bool Share(const Operand& a, const Operand& b, bool* exact) {
  *exact = false;
  const auto is_empty = [](const Operand& one) {
    return std::find(one.shape, one.shape + one.ndim, 0) != one.shape + one.ndim;
  };
  if (is_empty(a) || is_empty(b)) return false;
  // Each array gets its own dimensions, in which the other does not move.
  Problem both;
  const Operand* arrays[] = {&a, &b};
  for (const Operand* array : arrays) {
    View& view = both.views[both.count++];
    view.data = array->data;
    view.item = ItemSize(array->number);
  }
  for (int which = 0; which < 2; ++which) {
    const Operand& array = *arrays[which];
    for (int d = 0; d < array.ndim; ++d) {
      if (array.shape[d] == 1) continue;
      if (both.ndim == kMaxDims) return true;  // too many dimensions to tell
      both.shape[both.ndim] = array.shape[d];
      both.views[which].strides[both.ndim] = array.strides[d];
      both.views[1 - which].strides[both.ndim++] = 0;
    }
  }
  bool unused = false;
  if (!Overlap(both, both.views[0], both.views[1], &unused)) return false;
  *exact = a.data == b.data && both.views[0].item == both.views[1].item && a.ndim == b.ndim &&
           std::equal(a.shape, a.shape + a.ndim, b.shape);
  for (int d = 0; d < a.ndim && *exact; ++d) {
    *exact = a.shape[d] == 1 || a.strides[d] == b.strides[d];
  }
  return true;
}

}  // namespace

// A reduction kernel may write a result's element before another thread has read the argument
// there. The host side names all other mistakes.
bool ElementwiseCall::CheckOutputsOfReduction(PyObject* out) {
  const bool is_tuple = PyTuple_Check(out) != 0;
  const size_t count = is_tuple ? static_cast<size_t>(PyTuple_Size(out)) : 1;
  if (count > 1) outputs_.Grow(count, 0);
  bool is_readable = count > 0 && ReadArguments();
  static const std::string none;
  for (size_t i = 0; i < count && is_readable; ++i) {
    PyObject* object = is_tuple ? PyTuple_GetItem(out, static_cast<Py_ssize_t>(i)) : out;
    is_readable = ReadOperand(object, none, &place_, &outputs_[i]) == ReadResult::kDone &&
                  outputs_[i].is_array;
  }
  if (!is_readable) {
    PyErr_Clear();
    fall_back = false;
    return true;
  }
  const auto what = [&](size_t i) {
    return TextOf(self_->name) + ": out" + (is_tuple ? "[" + std::to_string(i) + "]" : "");
  };
  for (size_t i = 0; i < count; ++i) {
    bool exact = false;
    for (size_t j = i + 1; j < count; ++j) {
      if (!Share(outputs_[i], outputs_[j], &exact)) continue;
      PyErr_Format(PyExc_ValueError, "%s overlaps out[%zu]: give each its own memory",
                   what(i).c_str(), j);
      return false;
    }
    for (int j = 0; j < count_; ++j) {
      if (!operands_[j].is_array || !Share(outputs_[i], operands_[j], &exact)) continue;
      if (exact && count == 1) {
        const Ref args(PyTuple_New(count_));
        for (int k = 0; args && k < count_; ++k) {
          PyTuple_SetItem(args.get(), k, Ref::Borrow(args_[k]).release());
        }
        const Ref answer(args ? PyObject_CallMethod(reinterpret_cast<PyObject*>(self_),
                                                    methods::kRunsInPlace, "(O)", args.get())
                              : nullptr);
        if (!answer) return false;
        if (answer.get() == Py_True) continue;
      }
      PyErr_Format(PyExc_ValueError,
                   "%s overlaps argument %s, which the kernels still read while they write: pass "
                   "an out with its own memory",
                   what(i).c_str(), TextOf(PyTuple_GetItem(self_->parameters, j)).c_str());
      return false;
    }
  }
  return true;
}

bool Overlap(const Problem& problem, const View& a, const View& b, bool* exact) {
  *exact = a.data == b.data && a.item == b.item;
  for (int d = 0; d < problem.ndim && *exact; ++d) {
    *exact = problem.shape[d] == 1 || a.strides[d] == b.strides[d];
  }
  if (*exact) return true;
  // The number of bytes spanned by the dimensions whose stride is not a multiple of `step`; 0: all
  // dimensions.
  const auto span = [&](const View& view, int64_t step, int64_t* before) {
    int64_t after = view.item;
    *before = 0;
    for (int d = 0; d < problem.ndim; ++d) {
      const int64_t stride = view.strides[d] * view.item;
      if (step != 0 && stride % step == 0) continue;
      (stride < 0 ? *before : after) += (problem.shape[d] - 1) * stride;
    }
    return after - *before;
  };
  int64_t before_a = 0;
  int64_t before_b = 0;
  const int64_t bytes_a = span(a, 0, &before_a);
  const int64_t bytes_b = span(b, 0, &before_b);
  const char* start_a = a.data + before_a;
  const char* start_b = b.data + before_b;
  if (start_a + bytes_a <= start_b || start_b + bytes_b <= start_a) return false;
  // Interleaved arrays, such as two columns of a matrix, are disjoint modulo one of the strides.
  for (const View* view : {&a, &b}) {
    for (int d = 0; d < problem.ndim; ++d) {
      const int64_t step = Magnitude(view->strides[d] * view->item);
      if (step == 0 || problem.shape[d] == 1) continue;
      const int64_t part_a = span(a, step, &before_a);
      const int64_t part_b = span(b, step, &before_b);
      if (part_a > step || part_b > step) continue;
      int64_t apart = ((b.data + before_b) - (a.data + before_a)) % step;
      if (apart < 0) apart += step;
      if (apart >= part_a && apart + part_b <= step) return false;
    }
  }
  return true;
}

bool OverlapsItself(const Problem& problem, const View& view) {
  // Visit dimensions by increasing stride: each must step over everything below it.
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims];
  int count = 0;
  for (int d = 0; d < problem.ndim; ++d) {
    if (problem.shape[d] == 1) continue;
    int at = count++;
    const int64_t stride = Magnitude(view.strides[d]);
    for (; at > 0 && strides[at - 1] > stride; --at) {
      strides[at] = strides[at - 1];
      sizes[at] = sizes[at - 1];
    }
    strides[at] = stride;
    sizes[at] = problem.shape[d];
  }
  int64_t reach = 0;
  for (int d = 0; d < count; ++d) {
    if (strides[d] <= reach) return true;
    reach += strides[d] * (sizes[d] - 1);
  }
  return false;
}

}  // namespace elementwise
