// The choice of an autotuner for a call, and the changes that it makes to the arguments.
#include <algorithm>

#include "arguments/torch/tensor.h"
#include "python/call_arguments.h"
#include "python/free_threaded_lock.h"
#include "python/upcalls.h"
#include "triton/general/general_call.h"

namespace triton {

namespace {

// Whether a value is fully described by itself.
bool IsNumber(PyObject* object) {
  return PyLong_CheckExact(object) != 0 || PyBool_Check(object) != 0 || object == Py_None ||
         PyFloat_CheckExact(object) != 0 || PyUnicode_CheckExact(object) != 0;
}

}  // namespace

// Read the numbers of shapes that the choice depends on. False if they may differ from the numbers
// that Python reads; the choice is then not cached. A Python error may be set.
bool GeneralCall::ReadShapes() {
  for (const KeyPart& part : state_.shape_key) {
    PyObject* object = bound_[part.parameter];
    uint64_t word = 0;
    if (object != nullptr && object != Py_None) {
      TypeEntry scratch;
      const TypeEntry* entry = LookUpType(Py_TYPE(object), &scratch);
      if (entry == nullptr || entry->kind != ArgumentKind::kExchange) return false;
      DLTensor tensor;
      const TensorRead read = ReadTensor(entry->api, object, &tensor);
      if (read != TensorRead::kDone || !ReadShapePart(part, tensor, &word)) return false;
    }
    shapes_.Add(word);
  }
  return true;
}

// An autotuner lists the element types in the order of the arguments. This is the order of the
// parameters, except for keywords.
void GeneralCall::AddOrder(Words* key) const {
  const Py_ssize_t size = keyword_names_ != nullptr ? PyTuple_Size(keyword_names_) : 0;
  if (is_in_order_) return;
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* name = PyTuple_GetItem(keyword_names_, i);
    const int target = FindParameter(state_.parameters.get(), state_.count, name);
    if (target >= 0) key->Add(MakeWord(WordKind::kOption, static_cast<uint64_t>(target)));
  }
}

// An object that is not a number may also have an element type, whatever Triton makes of it.
void GeneralCall::AddTypes(Words* key) {
  const FreeThreadedLock lock(state_.mutex);
  for (size_t i = 0; i < state_.count; ++i) {
    PyObject* object = bound_[i];
    if (object == nullptr || IsNumber(object)) continue;
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    const auto found = std::find_if(state_.types.begin(), state_.types.end(),
                                    [&](const Ref& one) { return one.get() == type; });
    const auto number = static_cast<uint64_t>(found - state_.types.begin());
    if (found == state_.types.end()) state_.types.push_back(Ref::Borrow(type));
    key->Add(MakeWord(WordKind::kConstant, number << 16 | i));
  }
}

std::shared_ptr<const TunedChoice> GeneralCall::FindChoice() {
  Words& key = tuning_key_;
  if (!ReadShapes()) {
    is_key_known_ = false;
    return nullptr;
  }
  for (size_t i = 0; i < shapes_.size(); ++i) key.Add(shapes_[i]);
  for (const KeyPart& part : state_.tuning_key) {
    if (part.IsOfShape()) continue;
    PyObject* object = bound_[part.parameter];
    if (object == nullptr) {
      key.Add(MakeWord(WordKind::kUnset));
      continue;
    }
    if (part.kind == KeyKind::kNone) {
      key.Add(MakeWord(object == Py_None ? WordKind::kNone : WordKind::kOne));
      continue;
    }
    if (part.kind == KeyKind::kNumber && !IsNumber(object)) {
      is_key_known_ = false;  // its text may change even if its value does not
      return nullptr;
    }
    if (part.kind == KeyKind::kType) object = reinterpret_cast<PyObject*>(Py_TYPE(object));
    Specializer words(conversion_, state_.interner);
    if (words.AddConstant(nullptr, object) != Mismatch::kNone) return nullptr;
    for (size_t i = 0; i < words.key.size(); ++i) key.Add(words.key[i]);
  }
  AddOrder(&key);
  AddTypes(&key);
  // The element types of the tensors, in the order of the parameters.
  const Words& all = specializer_.key;
  const TensorDescriptor* descriptor = specializer_.descriptors.data();
  for (size_t i = 0; i < all.size(); ++i) {
    const WordKind kind = KindOf(all[i]);
    if (kind == WordKind::kDescriptor) {
      i += PayloadOf(all[i]) & 0xff;  // the block of a descriptor: a hook may still set it
      key.Add(MakeWord(kind, static_cast<uint64_t>((descriptor++)->rank)));
    } else if (kind == WordKind::kTensor || kind == WordKind::kNamed) {
      key.Add(MakeWord(kind, PayloadOf(all[i])));
    } else {
      key.Add(MakeWord(WordKind::kNone));
    }
  }
  // The best configuration for one architecture may not even run on another.
  uint64_t target = 0;
  if (!FindTarget(&target)) return nullptr;
  key.Add(MakeWord(WordKind::kTarget, target));
  Specializer options(conversion_, state_.interner);
  if (!AddOptions(&options)) return nullptr;
  for (size_t i = 0; i < options.key.size(); ++i) key.Add(options.key[i]);
  const FreeThreadedLock lock(state_.mutex);
  const std::shared_ptr<const TunedChoice>* choice = state_.choices.Find(key, key.Hash());
  return choice != nullptr ? *choice : nullptr;
}

// The autotuner runs in Python, launches once itself, and returns its choice.
PyObject* GeneralCall::CallTuner() {
  const Ref positional = PositionalTuple(args_, count_);
  const Ref keywords = KeywordDict(args_, count_, keyword_names_);
  uint64_t target = 0;  // without arrays the device is not known yet
  if (!positional || !keywords || !FindTarget(&target)) return nullptr;
  // It records its choice even if the launch fails, so the next call asks again.
  const std::shared_ptr<const TunedChoice> before = std::move(state_.last_choice);
  state_.last_choice = nullptr;
  const Ref tuned(PyObject_CallMethod(Object(), methods::kTune, "OOOi", grid_, positional.get(),
                                      keywords.get(), conversion_.ordinal));
  if (!tuned) return nullptr;
  PyObject* result = nullptr;
  bool is_kept = false;
  std::shared_ptr<const TunedChoice> choice =
      TunedChoice::Read(state_.parameters.get(), state_.count, tuned.get(), &result, &is_kept);
  if (choice == nullptr) return nullptr;
  if (!is_kept || !is_key_known_) {
    state_.last_choice = std::move(choice);
  } else {
    const FreeThreadedLock lock(state_.mutex);
    const uint64_t hash = tuning_key_.Hash();
    if (state_.choices.Find(tuning_key_, hash) == nullptr) {
      state_.choices.Add(tuning_key_, hash, std::move(choice));
    }
    state_.last_choice = *state_.choices.Find(tuning_key_, hash);
  }
  return Ref::Borrow(result).release();
}

bool GeneralCall::ApplyChoice(const TunedChoice& choice) {
  is_chosen_ = true;
  for (const auto& one : choice.constants) {
    PyObject* name = state_.parameters[one.name].name.get();
    if (bound_[one.name] != nullptr && !one.replaces) return RaiseBinding("tuned", name);
    if (one.name < count_) return RaiseBinding("twice", name);
    bound_[one.name] = one.value.get();
  }
  for (const auto& one : choice.options) {
    const auto given = std::find_if(
        bound_.options.begin(), bound_.options.end(),
        [&](const Option& option) { return PyUnicode_Compare(option.first, one.name.get()) == 0; });
    if (given == bound_.options.end()) {
      bound_.options.emplace_back(one.name.get(), one.value.get());
    } else if (one.replaces) {
      given->second = one.value.get();
    } else {
      return RaiseBinding("tuned", one.name.get());
    }
  }
  if (!choice.has_hook && !choice.sets_arguments && choice.blocks.empty() && !misses_one_) {
    return true;
  }
  for (const auto& one : choice.blocks) {
    const Ref block(PySequence_List(one.second.get()));
    PyObject* descriptor = bound_[one.first];
    if (!block || descriptor == nullptr ||
        PyObject_SetAttrString(descriptor, "block_shape", block.get()) < 0) {
      return false;
    }
  }
  if (choice.has_hook && !RunHook(choice)) return false;
  specializer_.Clear();
  return Specialize();
}

bool GeneralCall::RunHook(const TunedChoice& choice) {
  // It may change the arguments (a descriptor's block), so they are read again.
  const Ref positional = PositionalTuple(args_, count_);
  const Ref keywords = KeywordDict(args_, count_, keyword_names_);
  const Ref settings = choice.Settings(state_.parameters.get());
  if (!positional || !keywords || !settings) return false;
  const Ref none(PyObject_CallMethod(Object(), methods::kRunHook, "OOOOO", choice.config.get(),
                                     grid_, positional.get(), keywords.get(), settings.get()));
  return static_cast<bool>(none);
}

}  // namespace triton
