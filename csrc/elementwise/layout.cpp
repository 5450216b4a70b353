#include "elementwise/layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace elementwise {

namespace {

// Up to this many packs for each thread that keeps the device busy, each thread takes one pack.
constexpr int64_t kSmallPacks = 8;

void SwapDims(Problem* problem, int a, int b) {
  std::swap(problem->shape[a], problem->shape[b]);
  for (int i = 0; i < problem->count; ++i) {
    std::swap(problem->views[i].strides[a], problem->views[i].strides[b]);
  }
}

void DropDim(Problem* problem, int dim) {
  for (int d = dim; d + 1 < problem->ndim; ++d) SwapDims(problem, d, d + 1);
  --problem->ndim;
}

// Dimensions from the innermost out. Unless elements must stay in order, the first output's memory
// order decides. A dimension that the output traverses backwards is reversed for all arrays.
void OrderDims(Problem* problem, bool in_order) {
  std::reverse(problem->shape, problem->shape + problem->ndim);
  for (int i = 0; i < problem->count; ++i) {
    std::reverse(problem->views[i].strides, problem->views[i].strides + problem->ndim);
  }
  for (int d = problem->ndim; d-- > 0;) {
    if (problem->shape[d] == 1) DropDim(problem, d);
  }
  if (in_order) return;
  const View& lead = problem->views[0];
  for (int d = 0; d < problem->ndim; ++d) {
    if (lead.strides[d] >= 0) continue;
    for (int i = 0; i < problem->count; ++i) {
      View& view = problem->views[i];
      view.data += (problem->shape[d] - 1) * view.strides[d] * view.item;
      view.strides[d] = -view.strides[d];
    }
  }
  for (int end = 1; end < problem->ndim; ++end) {  // stable, and fast enough for so few
    for (int d = end; d > 0 && lead.strides[d] < lead.strides[d - 1]; --d) {
      SwapDims(problem, d, d - 1);
    }
  }
}

void MergeDims(Problem* problem) {
  for (int d = 0; d + 1 < problem->ndim;) {
    bool can_merge = true;
    for (int i = 0; i < problem->count && can_merge; ++i) {
      const int64_t* strides = problem->views[i].strides;
      can_merge = strides[d + 1] == strides[d] * problem->shape[d];
    }
    if (!can_merge) {
      ++d;
      continue;
    }
    problem->shape[d] *= problem->shape[d + 1];
    DropDim(problem, d + 1);
  }
  if (problem->ndim > 0) return;
  problem->ndim = 1;  // one element
  problem->shape[0] = 1;
  for (int i = 0; i < problem->count; ++i) problem->views[i].strides[0] = 1;
}

bool NeedsWide(const Problem& problem) {
  constexpr int64_t kLimit = int64_t{1} << 31;
  if (problem.Size() >= kLimit) return true;
  for (int i = 0; i < problem.count; ++i) {
    int64_t reach = 0;
    for (int d = 0; d < problem.ndim; ++d) {
      reach += (problem.shape[d] - 1) * Magnitude(problem.views[i].strides[d]);
    }
    if (reach >= kLimit) return true;
  }
  return false;
}

// Whether packs of `vector` elements along dimension `unit` are aligned at every start.
bool PacksAligned(const Problem& problem, const View& view, int vector, int unit) {
  const int64_t alignment = std::min(16, vector * view.item);
  if (reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(alignment) != 0) return false;
  for (int d = 0; d < problem.ndim; ++d) {
    if (d != unit && view.strides[d] * view.item % alignment != 0) return false;
  }
  return true;
}

int WidestPack(const Problem& problem) {
  int item = 1;
  for (int i = 0; i < problem.count; ++i) item = std::max(item, problem.views[i].item);
  return 16 / item;
}

bool IsContiguous(const Problem& problem) {
  if (problem.ndim != 1) return false;
  for (int i = 0; i < problem.count; ++i) {
    if (problem.views[i].strides[0] != 1) return false;
  }
  return true;
}

// Packs along the innermost dimension: every array is contiguous or constant there.
int StridedVector(const Problem& problem) {
  for (int i = 0; i < problem.count; ++i) {
    const int64_t inner = problem.views[i].strides[0];
    if (inner != 1 && !(inner == 0 && i > 0)) return 1;
  }
  for (int vector = WidestPack(problem); vector > 1; vector /= 2) {
    if (problem.shape[0] % vector != 0) continue;
    bool aligned = true;
    for (int i = 0; i < problem.count && aligned; ++i) {
      const View& view = problem.views[i];
      aligned = view.strides[0] == 0 || PacksAligned(problem, view, vector, 0);
    }
    if (aligned) return vector;
  }
  return 1;
}

// The dimension in which an input is contiguous that is strided along the innermost one; 0: none.
int TransposedDim(const Problem& problem) {
  constexpr int64_t kLeast = 16;
  if (problem.views[0].strides[0] != 1 || problem.shape[0] < kLeast) return 0;
  for (int i = 1; i < problem.count; ++i) {
    const int64_t* strides = problem.views[i].strides;
    if (strides[0] == 1 || strides[0] == 0) continue;
    for (int d = 1; d < problem.ndim; ++d) {
      if (strides[d] == 1 && problem.shape[d] >= kLeast) return d;
    }
  }
  return 0;
}

void ChooseTiled(const Problem& problem, LayoutKey* key) {
  constexpr int kPatch = 4;
  bool aligned = true;
  for (int i = 0; i < problem.count; ++i) {
    const View& view = problem.views[i];
    const char kind = view.strides[0] == 1 ? 'u' : view.strides[1] == 1 ? 'b' : 's';
    key->classes[i] = kind;
    if (kind != 's' && !PacksAligned(problem, view, kPatch, kind == 'u' ? 0 : 1)) aligned = false;
  }
  key->kind = 't';
  key->vector = aligned ? kPatch : 1;
}

}  // namespace

void Problem::AddView(const Operand& operand) {
  View& view = views[count++];
  view.data = operand.data;
  view.item = ItemSize(operand.number);
  const int missing = ndim - operand.ndim;
  for (int d = 0; d < ndim; ++d) {
    const bool is_broadcast = d < missing || (operand.shape[d - missing] == 1 && shape[d] != 1);
    view.strides[d] = is_broadcast ? 0 : operand.strides[d - missing];
  }
}

bool Broadcast(Problem* problem, const Operand& operand) {
  const int added = operand.ndim - problem->ndim;
  if (added > 0) {
    std::move_backward(problem->shape, problem->shape + problem->ndim,
                       problem->shape + operand.ndim);
    std::fill(problem->shape, problem->shape + added, 1);
    problem->ndim = operand.ndim;
  }
  const int missing = problem->ndim - operand.ndim;
  for (int d = 0; d < operand.ndim; ++d) {
    int64_t& size = problem->shape[missing + d];
    if (operand.shape[d] == size || operand.shape[d] == 1) continue;
    if (size != 1) return false;
    size = operand.shape[d];
  }
  return true;
}

bool MemoryOrder(const Operand& operand, int* order) {
  std::iota(order, order + operand.ndim, 0);
  const auto is_before = [&](int a, int b) {
    // A dimension of one element, or a broadcast one, does not affect the memory order.
    if (operand.shape[a] <= 1 || operand.shape[b] <= 1) return false;
    if (operand.strides[a] == 0 || operand.strides[b] == 0) return false;
    return Magnitude(operand.strides[a]) > Magnitude(operand.strides[b]);
  };
  bool is_changed = false;
  for (int end = 1; end < operand.ndim; ++end) {
    for (int d = end; d > 0 && is_before(order[d], order[d - 1]); --d) {
      std::swap(order[d], order[d - 1]);
      is_changed = true;
    }
  }
  return is_changed;
}

LayoutKey ChooseLayout(Problem* problem, bool in_order, int64_t threads) {
  OrderDims(problem, in_order);
  MergeDims(problem);
  LayoutKey key;
  key.wide = NeedsWide(*problem) ? 1 : 0;
  if (IsContiguous(*problem)) {
    key.kind = 'c';
    const int vector = WidestPack(*problem);
    key.vector = static_cast<uint8_t>(vector);
    for (int i = 0; i < problem->count; ++i) {
      if (!PacksAligned(*problem, problem->views[i], vector, 0)) key.vector = 1;
      key.classes[i] = 'u';
    }
    if (problem->shape[0] <= threads) key.vector = 1;
    key.small = problem->shape[0] / key.vector <= kSmallPacks * threads ? 1 : 0;
    return key;
  }
  const int across = in_order || key.wide != 0 ? 0 : TransposedDim(*problem);
  key.rank = static_cast<uint8_t>(problem->ndim);
  if (across != 0) {
    SwapDims(problem, 1, across);
    ChooseTiled(*problem, &key);
    return key;
  }
  key.kind = 's';
  const int vector = StridedVector(*problem);
  key.vector = static_cast<uint8_t>(vector);
  for (int i = 0; i < problem->count; ++i) {
    key.classes[i] = vector == 1 ? 's' : problem->views[i].strides[0] == 1 ? 'u' : 'z';
  }
  problem->shape[0] /= vector;
  key.small = problem->Size() <= kSmallPacks * threads ? 1 : 0;
  return key;
}

Division::Division(uint32_t number) : divisor(number), factor(0), shift(0) {
  // Granlund and Montgomery: exact for numbers below 2^31.
  while (shift < 32 && (uint64_t{1} << shift) < number) ++shift;
  factor =
      static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - number)) / number + 1);
}

}  // namespace elementwise
