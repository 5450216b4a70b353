// What an autotuner chose for a key.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "python/python.h"
#include "triton/parameter.h"

namespace triton {

// Kept by whoever uses it: a dispatcher may forget it meanwhile.
struct TunedChoice {
  std::vector<std::pair<size_t, Ref>> constants;  // parameter, value
  std::vector<std::pair<Ref, Ref>> options;       // interned name, value
  Ref config;
  bool has_hook = false;  // to be called before each launch

  // For the garbage collector, which must see each once: others share it.
  int Traverse(visitproc visit, void* arg, unsigned traversal) const;
  mutable unsigned last_traversal = 0;

  // Read what the dispatcher's _tune gave; *result, borrowed, is what the call gives. Null with a
  // Python error set.
  static std::shared_ptr<const TunedChoice> Read(const Parameter* parameters, size_t count,
                                                 PyObject* tuned, PyObject** result);
};

}  // namespace triton
