#include "elementwise/parameters.h"

#include <algorithm>

namespace elementwise {

uint64_t PutLayout(ParameterWriter* writer, const Problem& problem, const LayoutKey& key,
                   uint32_t unroll) {
  const bool wide = key.wide != 0;
  const auto put_division = [&](int64_t number) {
    if (wide) {
      writer->Put(number);
    } else {
      writer->Put(Division(static_cast<uint32_t>(number)));
    }
  };
  const int64_t size = problem.Size();
  const int64_t per_block = int64_t{kBlock} * unroll;
  int first_stride = 0;
  uint64_t blocks = 0;
  if (key.kind == 'c') {
    writer->PutIndex(size, wide);
    const int64_t packs = size / key.vector;
    return static_cast<uint64_t>(std::max<int64_t>(1, (packs + per_block - 1) / per_block));
  }
  if (key.kind == 's') {
    writer->PutIndex(size, wide);
    for (int d = 0; d + 1 < problem.ndim; ++d) put_division(problem.shape[d]);
    first_stride = key.vector > 1 ? 1 : 0;
    blocks = static_cast<uint64_t>((size + per_block - 1) / per_block);
  } else {
    const auto tiles = [&](int d) { return (problem.shape[d] + kTile - 1) / kTile; };
    int64_t count = tiles(0) * tiles(1);
    for (int d = 2; d < problem.ndim; ++d) count *= problem.shape[d];
    writer->PutIndex(count, false);
    put_division(tiles(0));
    put_division(tiles(1));
    for (int d = 2; d + 1 < problem.ndim; ++d) put_division(problem.shape[d]);
    writer->PutIndex(problem.shape[0], false);
    writer->PutIndex(problem.shape[1], false);
    blocks = static_cast<uint64_t>(count);
  }
  for (int i = 0; i < problem.count; ++i) {
    for (int d = first_stride; d < problem.ndim; ++d) {
      writer->PutIndex(problem.views[i].strides[d], wide);
    }
  }
  return blocks;
}

}  // namespace elementwise
