// The choices of a kernel's decorators for a key.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "formats/dlpack.h"
#include "python/python.h"
#include "triton/values/parameter.h"

namespace triton {

// How a choice depends on an argument.
enum class KeyKind : int {
  kValue = 0,   // on its value, of any type, as for an autotuner
  kNumber = 1,  // on its value: a number, bool, str or None; others are not cached
  kNone = 2,    // on whether it is given, and is None
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
  int index = 0;  // of a size or a stride; negative: counted from the end

  bool IsOfShape() const { return kind >= KeyKind::kSize; }
};

// For a tensor whose whole shape, or strides, affects a choice.
constexpr int kMostDimensions = 8;

// Read the number of a tensor that a part of a shape depends on. The size of a missing dimension is
// the word for none. False if such numbers cannot describe the tensor.
bool ReadShapePart(const KeyPart& part, const DLTensor& tensor, uint64_t* word);

// Its users keep it alive, because a dispatcher may drop it meanwhile.
struct TunedChoice {
  // The values that a choice sets, and whether they replace the call's own. An autotuner refuses to
  // replace them; heuristics do not check.
  template <class Name>
  struct Setting {
    Name name;
    Ref value;
    bool replaces;
  };

  std::vector<Setting<size_t>> constants;  // by parameter, which may be a run-time parameter
  std::vector<Setting<Ref>> options;       // by the interned name
  // The tensor descriptors that get a block before each launch, by the parameter: a sequence of
  // ints.
  std::vector<std::pair<size_t, Ref>> blocks;
  Ref config;
  bool has_hook = false;        // call it before each launch
  bool sets_arguments = false;  // sets parameters that are passed

  // All values that it sets, by name. Null with a Python error set.
  Ref Settings(const Parameter* parameters) const;

  // For the garbage collector. Choices are shared, and each must be visited once.
  int Traverse(visitproc visit, void* arg, unsigned traversal) const;
  mutable unsigned last_traversal = 0;

  // Read the result of the dispatcher's _tune. *result, borrowed, is the call's result. If
  // *is_kept, later calls with this key skip Python. Null with a Python error set.
  static std::shared_ptr<const TunedChoice> Read(const Parameter* parameters, size_t count,
                                                 PyObject* tuned, PyObject** result, bool* is_kept);
};

}  // namespace triton
