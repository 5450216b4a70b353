// Learning the forms of Triton calls.
#include <algorithm>
#include <utility>

#include "triton_launcher.h"
#include "triton_quick.h"

int TritonArgumentOf(PyObject* name, size_t index, size_t count, PyObject* keyword_names) {
  if (index < count) return static_cast<int>(index);
  const Py_ssize_t size = keyword_names != nullptr ? PyTuple_Size(keyword_names) : 0;
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (PyUnicode_Compare(PyTuple_GetItem(keyword_names, i), name) == 0) {
      return static_cast<int>(count) + static_cast<int>(i);
    }
  }
  return -1;
}

bool TritonFound::Set(TritonVariantObject* object, std::shared_ptr<const TunedChoice> tuned,
                      size_t leaf_count) {
  const TritonVariantState& found = *object->state;
  if (found.has_parts || found.global_scratch != 0 || found.profile_scratch != 0) return false;
  if (found.sources.size() > kMost) return false;
  std::fill(slots, slots + kMost, static_cast<uint8_t>(kMost));
  size_t null_count = 0;
  for (size_t i = 0; i < found.sources.size(); ++i) {
    const TritonSource& source = found.sources[i];
    const auto slot = static_cast<uint8_t>(i);
    if (source.part == TritonSource::kValue) {
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

TritonForm::~TritonForm() {
  for (size_t i = 0; i < step_count_; ++i) {
    Py_XDECREF(steps_[i].object);
    Py_DECREF(reinterpret_cast<PyObject*>(steps_[i].type));
  }
  Py_XDECREF(names_);
}

bool TritonForm::AddStep(TritonStep::Kind kind, PyObject* object, int argument) {
  if (step_count_ == kMost || argument > INT16_MAX) return false;
  const bool is_kept = kind == TritonStep::kConstant || argument < 0;
  steps_[step_count_++] = {Py_TYPE(object),
                           is_kept ? Ref::Borrow(object).release() : nullptr,
                           static_cast<int16_t>(argument),
                           kind,
                           true,
                           true};
  Py_INCREF(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  const bool is_constant = kind == TritonStep::kConstant || kind == TritonStep::kConstantInt;
  leaf_count_ = static_cast<uint8_t>(leaf_count_ + (is_constant ? 0 : 1));
  const bool is_word =
      kind == TritonStep::kInt || kind == TritonStep::kTensor || kind == TritonStep::kConstantInt;
  const int words = kind == TritonStep::kKeyInt ? 2 : is_word ? 1 : 0;
  word_count_ = static_cast<uint8_t>(word_count_ + words);
  return true;
}

// A run-time parameter's argument, of the kinds that most are.
bool TritonForm::AddArgument(const TritonParameter& parameter, PyObject* object, int argument,
                             bool is_key) {
  if (parameter.forced.type_class != ForcedType::kNotForced) return false;
  if (is_key && !PyLong_CheckExact(object)) return false;
  TritonStep::Kind kind;
  if (PyLong_CheckExact(object)) {
    kind = is_key ? TritonStep::kKeyInt : TritonStep::kInt;
  } else if (PyFloat_CheckExact(object)) {
    kind = TritonStep::kFloat;
  } else if (PyBool_Check(object)) {
    kind = TritonStep::kBool;
  } else if (object == Py_None) {
    kind = TritonStep::kNone;
  } else {
    TypeEntry scratch;
    const TypeEntry* entry = LookUpType(Py_TYPE(object), &scratch);
    if (entry == nullptr) PyErr_Clear();
    if (entry == nullptr || entry->kind != ArgumentKind::kExchange) return false;
    if (api_ != nullptr && api_ != entry->api) return false;
    api_ = entry->api;
    kind = TritonStep::kTensor;
  }
  if (!AddStep(kind, object, argument)) return false;
  steps_[step_count_ - 1].specialize = parameter.specialize;
  steps_[step_count_ - 1].align = parameter.align;
  return true;
}

// A constant's or an option's value, if it is known by identity for as long as it is kept.
bool TritonForm::AddConstant(TritonState& state, PyObject* object, int argument) {
  if (PyLong_CheckExact(object)) return AddStep(TritonStep::kConstantInt, object, argument);
  uint64_t number = 0;
  bool is_immutable = object == Py_None || PyBool_Check(object) || PyFloat_CheckExact(object);
  if (!is_immutable && !state.interner.Number(object, &number, &is_immutable)) {
    PyErr_Clear();
    return false;
  }
  return is_immutable && AddStep(TritonStep::kConstant, object, argument);
}

std::unique_ptr<TritonForm> TritonForm::Make(TritonState& state, PyObject* const* args,
                                             size_t count, PyObject* keyword_names) {
  std::unique_ptr<TritonForm> form(new TritonForm(count, keyword_names));
  for (const size_t i : state.runtime) {
    const TritonParameter& parameter = state.parameters[i];
    const int argument = TritonArgumentOf(parameter.name.get(), i, count, keyword_names);
    PyObject* object = argument >= 0 ? args[argument] : parameter.default_value.get();
    // A default is no part of an autotuner's key.
    const auto& keys = state.tuning_key;
    const bool is_key = argument >= 0 && std::count(keys.begin(), keys.end(), i) != 0;
    if (!form->AddArgument(parameter, object, argument, is_key)) return nullptr;
  }
  for (const size_t i : state.constants) {
    const int argument = TritonArgumentOf(state.parameters[i].name.get(), i, count, keyword_names);
    // One that is not given is the same for all calls of this form.
    if (argument >= 0 && !form->AddConstant(state, args[argument], argument)) return nullptr;
  }
  // What is left are options.
  const Py_ssize_t size = keyword_names != nullptr ? PyTuple_Size(keyword_names) : 0;
  for (Py_ssize_t k = 0; k < size; ++k) {
    PyObject* name = PyTuple_GetItem(keyword_names, k);
    const bool is_parameter = std::any_of(
        state.parameters.get(), state.parameters.get() + state.count,
        [&](const TritonParameter& one) { return PyUnicode_Compare(one.name.get(), name) == 0; });
    const int argument = static_cast<int>(count) + static_cast<int>(k);
    if (!is_parameter && !form->AddConstant(state, args[argument], argument)) return nullptr;
  }
  return form;
}

// The arguments are read once more, for their words.
bool TritonForm::AddVariant(const TritonState& state, PyObject* const* args,
                            TritonVariantObject* variant,
                            const std::shared_ptr<const TunedChoice>& choice) {
  auto made = std::make_unique<TritonFound>();
  std::unique_ptr<TritonFound>& place = found_[next_];
  if (!made->Set(variant, choice, leaf_count_) || (place != nullptr && state.users != 0))
    return false;
  TritonFound* before = std::exchange(last_, made.get());
  if (!ReadWords(state, args, made->words)) {
    last_ = before;
    return false;
  }
  place = std::move(made);
  next_ = (next_ + 1) % kVariants;
  return true;
}

void TritonForm::Learn(TritonState& state, PyObject* const* args, size_t count,
                       PyObject* keyword_names, TritonVariantObject* variant,
                       const std::shared_ptr<const TunedChoice>& choice) {
#ifndef Py_GIL_DISABLED
  // Where the calls keep changing, learning costs more than it gives.
  constexpr unsigned kFreely = 64;
  if (++state.misses > kFreely && state.misses % 16 != 0) return;
  if (state.retired.size() > kFreely) return;  // many calls at once, and every one another
  std::unique_ptr<TritonForm> made = Make(state, args, count, keyword_names);
  if (made == nullptr) return;
  for (TritonForm* form : state.forms) {
    if (form == nullptr || !form->IsLike(*made)) continue;
    form->AddVariant(state, args, variant, choice);
    return;
  }
  if (!made->AddVariant(state, args, variant, choice)) return;
  // The form that was used least lately goes.
  constexpr int kLast = TritonState::kForms - 1;
  if (state.forms[kLast] != nullptr) state.retired.push_back(state.forms[kLast]);
  std::copy_backward(state.forms, state.forms + kLast, state.forms + TritonState::kForms);
  state.forms[0] = made.release();
  FreeRetired(state);
#else
  (void)state, (void)args, (void)count, (void)keyword_names, (void)variant, (void)choice;
#endif
}

void TritonForm::ForgetAll(TritonState& state) {
  for (TritonForm*& form : state.forms) {
    if (form != nullptr) state.retired.push_back(std::exchange(form, nullptr));
  }
  state.misses = 0;
  FreeRetired(state);
}

// Forms go once no call uses one.
void TritonForm::FreeRetired(TritonState& state) {
  if (state.users != 0) return;
  std::vector<TritonForm*> retired;
  retired.swap(state.retired);  // freeing may run Python, and learn
  for (TritonForm* form : retired) delete form;
}

int TritonForm::Traverse(visitproc visit, void* arg) const {
  for (size_t i = 0; i < step_count_; ++i) {
    Py_VISIT(steps_[i].object);
    Py_VISIT(reinterpret_cast<PyObject*>(steps_[i].type));
  }
  for (const std::unique_ptr<TritonFound>& one : found_) {
    if (one != nullptr) Py_VISIT(reinterpret_cast<PyObject*>(one->variant));
  }
  return 0;
}

bool TritonForm::IsLike(const TritonForm& other) const {
  return count_ == other.count_ && names_ == other.names_ && api_ == other.api_ &&
         std::equal(steps_, steps_ + step_count_, other.steps_, other.steps_ + other.step_count_,
                    [](const TritonStep& a, const TritonStep& b) {
                      return a.type == b.type && a.object == b.object && a.kind == b.kind;
                    });
}
