// The arguments of a call by parameter, and the words for them in the key.
#include <culaunch/guard.h>

#include "python/upcalls.h"
#include "triton/general/general_call.h"
#include "triton/grids/fallback.h"

namespace triton {

bool GeneralCall::Bind() {
  if (state_.is_compiled && (count_ != state_.count || keyword_names_ != nullptr)) {
    return RaiseBinding("not_by_position", Py_None);
  }
  if (count_ > state_.count) return RaiseBinding("too_many", Py_None);
  for (size_t i = 0; i < count_; ++i) bound_[i] = args_[i];
  if (keyword_names_ == nullptr) return true;
  const auto size = static_cast<size_t>(PyTuple_Size(keyword_names_));
  int last = -1;
  for (size_t i = 0; i < size; ++i) {
    PyObject* name = PyTuple_GetItem(keyword_names_, static_cast<Py_ssize_t>(i));
    const int target = FindParameter(state_.parameters.get(), state_.count, name);
    PyObject* value = args_[count_ + i];
    if (target < 0) {
      bound_.options.emplace_back(name, value);
    } else if (bound_[static_cast<size_t>(target)] != nullptr) {
      return RaiseBinding("twice", name);
    } else {
      bound_[static_cast<size_t>(target)] = value;
      is_in_order_ = is_in_order_ && target > last;
      last = target;
    }
  }
  return true;
}

bool GeneralCall::FillDefaults() {
  for (const size_t i : state_.constants) {
    if (bound_[i] != nullptr) continue;
    const Parameter& parameter = state_.parameters[i];
    bound_[i] = parameter.default_value.get();
    if (bound_[i] == nullptr && !parameter.is_optional) {
      return RaiseBinding("missing", parameter.name.get());
    }
  }
  return true;
}

bool GeneralCall::RaiseBinding(const char* what, PyObject* name) {
  CallUp(Upcall::kRaiseTritonBinding, "OsOn", Object(), what, name,
         static_cast<Py_ssize_t>(count_));
  if (state_.falls_back) RaiseFallback();
  return false;
}

bool GeneralCall::Specialize() {
  for (const size_t i : state_.runtime) {
    Parameter& parameter = state_.parameters[i];
    PyObject* object = bound_[i];
    if (object == nullptr) object = parameter.default_value.get();
    if (object == nullptr) {
      if (!parameter.is_optional || is_chosen_) {
        return RaiseBinding("missing", parameter.name.get());
      }
      misses_one_ = true;
      specializer_.key.Add(MakeWord(WordKind::kMissing));  // chosen later
      specializer_.leaves.Add(0);
      continue;
    }
    const Mismatch mismatch = specializer_.Add(parameter, object);
    if (mismatch == Mismatch::kNone) continue;
    // A decorator may replace the argument, so ask it before refusing the argument.
    if (!state_.is_tuned || is_chosen_ || mismatch == Mismatch::kPython) {
      return RaiseArgument(mismatch, i, object);
    }
    misses_one_ = true;
    specializer_.key.Add(MakeWord(WordKind::kMissing));
    specializer_.leaves.Add(0);
  }
  return true;
}

bool GeneralCall::RaiseArgument(Mismatch mismatch, size_t index, PyObject* object) {
  if (mismatch == Mismatch::kPython) return false;
  CallUp(Upcall::kRaiseTritonArgument, "OnOsLi", Object(), static_cast<Py_ssize_t>(index), object,
         MismatchName(mismatch), conversion_.detail,
         conversion_.has_array ? conversion_.ordinal : -1);
  if (state_.falls_back) RaiseFallback();
  return false;
}

bool GeneralCall::AddConstants() {
  for (const size_t i : state_.constants) {
    Parameter& parameter = state_.parameters[i];
    if (bound_[i] == nullptr) {
      specializer_.key.Add(MakeWord(WordKind::kMissing));
      continue;
    }
    const Mismatch mismatch = specializer_.AddConstant(&parameter, bound_[i]);
    if (mismatch != Mismatch::kNone) return RaiseArgument(mismatch, i, bound_[i]);
  }
  if (!AddOptions(&specializer_)) return false;
  uint64_t target = 0;
  if (!FindTarget(&target)) return false;
  specializer_.key.Add(MakeWord(WordKind::kTarget, target));
  return true;
}

bool GeneralCall::AddOptions(Specializer* specializer) {
  for (const Option& option : bound_.options) {
    uint64_t number = 0;
    bool is_immutable = false;
    if (!state_.interner.Number(option.first, &number, &is_immutable)) return false;
    specializer->key.Add(MakeWord(WordKind::kOption, number));
    if (specializer->AddConstant(nullptr, option.second) != Mismatch::kNone) return false;
  }
  return true;
}

// The architecture of the call's device. Without arrays, this is the current device.
bool GeneralCall::FindTarget(uint64_t* target) {
  if (conversion_.ordinal < 0) {
    conversion_.ordinal = culaunch::CurrentDevice(*state_.table);
    if (!conversion_.stream_known && state_.fallback != nullptr) {
      void* stream = nullptr;
      if (state_.fallback->current_work_stream(culaunch::kDLCUDA, conversion_.ordinal, &stream) !=
          0) {
        return false;
      }
      conversion_.stream = static_cast<CUstream>(stream);
    }
  }
  const auto ordinal = static_cast<size_t>(conversion_.ordinal);
  *target = static_cast<uint64_t>(ordinal < state_.targets.size() ? state_.targets[ordinal] : 0);
  return true;
}

}  // namespace triton
