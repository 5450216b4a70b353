// From the arguments of a Triton kernel to the words of a key and the values that are passed.
#pragma once

#include <atomic>
#include <vector>

#include "arguments/convert.h"
#include "python/numbers.h"
#include "python/python.h"
#include "triton/values/descriptor.h"
#include "triton/values/interner.h"
#include "triton/values/parameter.h"
#include "triton/values/types.h"
#include "triton/values/words.h"

namespace triton {

// Reads one call's arguments in order.
class Specializer {
 public:
  Specializer(Conversion& conversion, Interner& interner)
      : conversion_(conversion), interner_(interner) {}

  // Add an argument of a run-time parameter: its words to the key, its leaves to the values.
  Mismatch Add(Parameter& parameter, PyObject* object) {
    // The most common kind takes the shortest path.
    const TypeEntry* entry = parameter.last.load(std::memory_order_acquire);
    if (entry != nullptr && entry->type == Py_TYPE(object) && entry->kind == ArgumentKind::kInt &&
        parameter.forced.type_class == ForcedType::kNotForced) {
      return Int(object, {parameter.specialize, parameter.align});
    }
    return AddOther(parameter, object);
  }
  // Add a constant's words.
  Mismatch AddConstant(Parameter* parameter, PyObject* object);

  // Reset it to its initial state.
  void Clear() {
    conversion_.noted.reset();
    key.Clear();
    leaves.Clear();
    descriptors.clear();
  }

  Words key;
  // One word for each leaf of the run-time arguments (tuples are flattened), folded ones too. A
  // descriptor's word is its number.
  Words leaves;
  std::vector<TensorDescriptor> descriptors;

 private:
  struct Rules {
    bool specialize;
    bool align;
  };

  Mismatch Natural(PyObject* object, const TypeEntry* entry, Rules rules);
  Mismatch AddOther(Parameter& parameter, PyObject* object);

  Mismatch Int(PyObject* object, Rules rules) {
    int64_t value = 0;
    const IntRange range = ReadInt(object, &value);
    if (CULAUNCH_UNLIKELY(range != IntRange::kSigned)) return LargeInt(range, value, rules);
    key.Add(IntWord(value, rules.specialize, rules.align));
    leaves.Add(static_cast<uint64_t>(value));
    return Mismatch::kNone;
  }

  Mismatch LargeInt(IntRange range, int64_t value, Rules rules);
  Mismatch Array(const TypeEntry& entry, PyObject* object, Rules rules);
  Mismatch TensorLike(PyObject* object, Rules rules);
  Mismatch Tuple(PyObject* tuple);
  Mismatch Descriptor(PyObject* object, bool has_layout);
  Mismatch Other(PyObject* object, Rules rules);
  Mismatch Force(const Parameter& parameter, PyObject* object, const TypeEntry* entry, Rules rules);

  void AddTensor(uint64_t word_payload, WordKind kind, void* data, Rules rules) {
    const auto address = reinterpret_cast<uintptr_t>(data);
    key.Add(MakeWord(kind, word_payload, KeyOfBits(address, rules.specialize, rules.align)));
    leaves.Add(address);
  }

  Conversion& conversion_;
  Interner& interner_;
};

}  // namespace triton
