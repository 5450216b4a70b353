// Whether the arrays of a call share memory.
#include "elementwise/layout.h"

namespace elementwise {

bool Overlap(const Problem& problem, const View& a, const View& b, bool* exact) {
  *exact = a.data == b.data && a.item == b.item;
  for (int d = 0; d < problem.ndim && *exact; ++d) {
    *exact = problem.shape[d] == 1 || a.strides[d] == b.strides[d];
  }
  if (*exact) return true;
  // The bytes that the dimensions whose stride is no multiple of `step` span; 0: all of them.
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
  // Interleaved arrays, such as two columns of a matrix: disjoint modulo one of the strides.
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
  // Dimensions from the smallest stride up: each must step over all that is below it.
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
