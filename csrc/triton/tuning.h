// The choices of a kernel's decorators for a key.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "formats/dlpack.h"
#include "python/python.h"
#include "triton/parameter.h"

namespace triton {

// How a choice depends on an argument.
enum class KeyKind : int {
  kValue = 0,   // on its value, as an autotuner's: whatever it is
  kNumber = 1,  // on its value, which is a number, a bool, a str or None: else nothing is kept
  kNone = 2,    // on whether it is given, and None
  kType = 3,    // on its type
  // On one number of a tensor, which may be None:
  kSize = 4,
  kStride = 5,
  kRank = 6,
  kCount = 7,  // of its elements
};

// An argument that a choice depends on.
struct KeyPart {
  size_t parameter;
  KeyKind kind;
  int index = 0;  // of a size or a stride; from the end where it is negative

  bool IsOfShape() const { return kind >= KeyKind::kSize; }
};

// For a tensor whose whole shape, or strides, affect a choice.
constexpr int kMostDimensions = 8;

// Read the number of a tensor that a part of a shape is. A dimension that there is not is as none
// of a size; false where the tensor cannot be known by such numbers.
bool ReadShapePart(const KeyPart& part, const DLTensor& tensor, uint64_t* word);

// Its users keep it alive: a dispatcher may drop it meanwhile.
struct TunedChoice {
  // The values that a choice sets, and whether they replace the call's own: an autotuner refuses
  // that, heuristics do not check.
  template <class Name>
  struct Setting {
    Name name;
    Ref value;
    bool replaces;
  };

  std::vector<Setting<size_t>> constants;  // by the parameter, which may be a run-time one
  std::vector<Setting<Ref>> options;       // by the interned name
  // The tensor descriptors that get a block before each launch, by the parameter: a sequence of
  // ints.
  std::vector<std::pair<size_t, Ref>> blocks;
  Ref config;
  bool has_hook = false;        // to be called before each launch
  bool sets_arguments = false;  // of those that are passed, too

  // Everything that it sets, by name. Null with a Python error set.
  Ref Settings(const Parameter* parameters) const;

  // For the garbage collector, which must see each once: others share it.
  int Traverse(visitproc visit, void* arg, unsigned traversal) const;
  mutable unsigned last_traversal = 0;

  // Read what the dispatcher's _tune gave; *result, borrowed, is what the call gives, and *is_kept
  // whether another call of this key may do without Python. Null with a Python error set.
  static std::shared_ptr<const TunedChoice> Read(const Parameter* parameters, size_t count,
                                                 PyObject* tuned, PyObject** result, bool* is_kept);
};

}  // namespace triton
