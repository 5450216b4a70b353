// The globals and closures that a body read: each call checks that they still hold the same
// objects.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "python/function_parts.h"
#include "python/guards.h"
#include "python/python.h"

namespace function {

// One name that was read: an entry of a dict, a part of a function, or the content of a cell.
struct Read {
  Ref where;
  Ref name;  // None for a cell
  Ref value;
};

class Watch {
 public:
  // Null with a Python error set.
  static std::unique_ptr<Watch> Make(const std::vector<Read>& reads);

  // Whether nothing has changed. If something has, a Python error may be set.
  bool Holds() {
    for (const Cell& cell : cells_) {
      if (CULAUNCH_UNLIKELY(!IsSame(cell))) return false;
    }
    return PartsHold() && guards_.Hold();
  }

  // The same, if no Python call is needed to find out. False: call Holds().
  bool HoldsAtAGlance() const {
    for (const Cell& cell : cells_) {
      const bool is_seen = cell.is_read_in_place && InPlace(cell.cell.get()) == cell.value.get();
      if (CULAUNCH_UNLIKELY(!is_seen)) return false;
    }
    return PartsHold() && guards_.HasSeenAll();
  }

  int Traverse(visitproc visit, void* arg) const;
  // Stop watching, and release the watched objects. If a call without the GIL may still use them,
  // they stay alive until the function is freed.
  void Retire() {
#ifndef Py_GIL_DISABLED
    Clear();
#endif
  }
  void Clear() {
    guards_.Clear();
    std::vector<Cell> old;
    std::swap(cells_, old);
    std::vector<Part> parts;
    std::swap(parts_, parts);
  }

 private:
  struct Cell {
    Ref cell;
    Ref value;
    bool is_read_in_place;
  };

  // A cell's object lies right behind its head. The structure is not part of the stable ABI, so it
  // is used only if it gives the same as the attribute.
  static PyObject* InPlace(PyObject* cell) {
    return reinterpret_cast<std::atomic<PyObject*>*>(cell + 1)->load(std::memory_order_relaxed);
  }
  static bool IsSame(const Cell& cell) {
    if (cell.is_read_in_place) return InPlace(cell.cell.get()) == cell.value.get();
    const Ref held = ContentsOf(cell.cell.get());
    PyErr_Clear();
    return held.get() == cell.value.get();
  }

  // A part of a helper function that other code may replace.
  struct Part {
    Ref function;
    Ref value;
    FunctionPart part;
  };
  bool PartsHold() const {
    for (const Part& one : parts_) {
      if (CULAUNCH_UNLIKELY(PartOf(one.function.get(), one.part) != one.value.get())) return false;
    }
    return true;
  }

  Guards guards_;
  std::vector<Cell> cells_;
  std::vector<Part> parts_;
};

// Take (dict, function or cell, name or None, value) into the list. A name that is already in it
// gets the newer value. False with a Python error set.
bool AddReads(PyObject* entries, std::vector<Read>* reads);

}  // namespace function
