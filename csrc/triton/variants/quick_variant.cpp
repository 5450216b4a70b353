#include "triton/variants/quick_variant.h"

#include <algorithm>
#include <utility>

namespace triton {

bool QuickVariant::Set(VariantObject* object, std::shared_ptr<const TunedChoice> tuned,
                       size_t leaf_count) {
  const VariantState& found = *object->state;
  if (found.has_parts || found.global_scratch != 0 || found.profile_scratch != 0) return false;
  if (found.sources.size() > kMost) return false;
  std::fill(slots, slots + kMost, static_cast<uint8_t>(kMost));
  size_t null_count = 0;
  for (size_t i = 0; i < found.sources.size(); ++i) {
    const ParameterSource& source = found.sources[i];
    const auto slot = static_cast<uint8_t>(i);
    if (source.part == ParameterSource::kValue) {
      if (source.leaf >= leaf_count || slots[source.leaf] != kMost) return false;
      slots[source.leaf] = slot;
    } else {
      if (null_count == sizeof nulls) return false;
      nulls[null_count++] = slot;
    }
  }
  Py_INCREF(reinterpret_cast<PyObject*>(object));
  variant = object;
  state = object->state;
  choice = std::move(tuned);
  return true;
}

int QuickVariant::Traverse(visitproc visit, void* arg, unsigned traversal) const {
  Py_VISIT(reinterpret_cast<PyObject*>(variant));
  return choice != nullptr ? choice->Traverse(visit, arg, traversal) : 0;
}

}  // namespace triton
