// Selects the kernel of a call by its arrays' memory layouts, and that kernel's sizes and strides.
#pragma once

#include <cstdint>

#include "arguments/operands.h"

namespace elementwise {

using namespace operands;

constexpr uint32_t kBlock = 256;  // threads
constexpr int kTile = 64;

// The flags of a layout, as Python gets them.
enum LayoutFlag : int { kWide = 1, kSmall = 2 };

// The inputs of a compiled kernel; compared byte by byte.
struct LayoutKey {
  uint8_t kind = 0;  // 'c' contiguous, 's' strided, 't' tiled
  uint8_t vector = 1;
  uint8_t rank = 1;
  uint8_t wide = 0;
  uint8_t small = 0;  // each thread takes one pack, to spread few elements over the device
  char classes[kMaxOperands] = {};  // of each array, see culaunch._elementwise.loop.Layout
};

// An array as the kernel sees it: outputs first, then inputs.
struct View {
  char* data;
  int item;                   // bytes
  int64_t strides[kMaxDims];  // in elements; 0 if it is broadcast
};

// The dimensions of a call, and every array's strides in them.
struct Problem {
  int ndim = 0;
  int64_t shape[kMaxDims];
  int count = 0;
  View views[kMaxOperands];

  int64_t Size() const {
    int64_t size = 1;
    for (int i = 0; i < ndim; ++i) size *= shape[i];
    return size;
  }
  void AddView(const Operand& operand);
};

// Broadcast the problem's shape with an array's. False if the shapes are incompatible.
bool Broadcast(Problem* problem, const Operand& operand);

// The dimensions from the outermost in memory to the innermost; false if that is C order.
bool MemoryOrder(const Operand& operand, int* order);

// Reorder and merge dimensions (innermost first afterwards) and choose the kernel. With `in_order`
// elements stay in C order. `threads` is the number that keeps the device busy.
LayoutKey ChooseLayout(Problem* problem, bool in_order, int64_t threads);

inline int64_t Magnitude(int64_t number) { return number < 0 ? -number : number; }

// Whether two arrays may share memory. *exact: they have the same elements in the same places.
bool Overlap(const Problem& problem, const View& a, const View& b, bool* exact);

// Whether two elements of an array may share memory.
bool OverlapsItself(const Problem& problem, const View& view);

// A division by a number known before the launch, as in culaunch._elementwise.helpers.
struct Division {
  explicit Division(uint32_t number);
  uint32_t divisor, factor, shift;
};

}  // namespace elementwise
