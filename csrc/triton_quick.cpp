#include "triton_quick.h"

#include <culaunch/guard.h>

#include <algorithm>
#include <new>

#include "numbers.h"
#include "triton_launch.h"
#include "triton_launcher.h"

namespace {

// An int of more than one digit. False where it has more than 64 bits.
CULAUNCH_RARE bool ReadLargeInt(PyObject* object, int64_t* value) {
  int overflow = 0;
  *value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

uint64_t SingleBits(double value) {
  const auto narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  return bits;
}

// Which argument a parameter's value is: -1 where there is none.
int ArgumentOf(PyObject* name, size_t index, size_t count, PyObject* keyword_names) {
  if (index < count) return static_cast<int>(index);
  const Py_ssize_t size = keyword_names != nullptr ? PyTuple_Size(keyword_names) : 0;
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (PyUnicode_Compare(PyTuple_GetItem(keyword_names, i), name) == 0) {
      return static_cast<int>(count) + static_cast<int>(i);
    }
  }
  return -1;
}

// The arguments by parameter, with defaults: what a grid that is a function is asked with.
CULAUNCH_RARE Ref ArgumentDict(const TritonState& state, PyObject* const* args, size_t count,
                               PyObject* keyword_names) {
  Ref dict(PyDict_New());
  for (size_t i = 0; dict && i < state.count; ++i) {
    const TritonParameter& parameter = state.parameters[i];
    const int argument = ArgumentOf(parameter.name.get(), i, count, keyword_names);
    PyObject* value = argument >= 0 ? args[argument] : parameter.default_value.get();
    if (value != nullptr && PyDict_SetItem(dict.get(), parameter.name.get(), value) < 0) {
      return Ref();
    }
  }
  return dict;
}

}  // namespace

bool TritonForm::Call(TritonState& state, PyObject* grid, const uint32_t* dims,
                      PyObject* const* args, size_t count, PyObject* keyword_names,
                      PyObject** result) {
  *result = nullptr;
  Reading reading;
  TritonForm* form = nullptr;
  Outcome outcome = Outcome::kDifferent;
  ++state.reading;
  for (int i = 0; i < TritonState::kForms && outcome == Outcome::kDifferent; ++i) {
    form = state.forms[i];
    if (form == nullptr) break;
    if (form->count_ == count && form->names_ == keyword_names) {
      outcome = form->Read(state, args, &reading);
    }
  }
  --state.reading;
  if (outcome != Outcome::kSame) return outcome == Outcome::kFailed;
  TritonVariantObject* variant = form->Find(reading);
  if (variant == nullptr) return false;
  CUstream stream = nullptr;
  const DLPackExchangeAPI* api = form->api_ != nullptr ? form->api_ : state.fallback;
  if (api != nullptr && reading.device_type != culaunch::kDLCPU) {
    void* current = nullptr;
    if (api->current_work_stream(reading.device_type, reading.ordinal, &current) != 0) return true;
    stream = static_cast<CUstream>(current);
  }
  // Others may forget the form and its variants from here on.
  const Ref kept = Ref::Borrow(reinterpret_cast<PyObject*>(variant));
  uint32_t asked[3];
  if (dims == nullptr) {
    const Ref values = ArgumentDict(state, args, count, keyword_names);
    if (!values || !AskTritonGrid(grid, values.get(), *variant, asked)) return true;
    dims = asked;
  }
  void* pointers[kMost];
  const TritonVariantState& found = *variant->state;
  for (size_t i = 0; i < found.count; ++i) pointers[i] = reading.leaves + found.leaves[i];
  *result = LaunchTriton(*variant, dims, reading.ordinal, stream, pointers);
  return true;
}

TritonForm::Outcome TritonForm::Read(TritonState& state, PyObject* const* args,
                                     Reading* reading) const {
  culaunch::Driver& driver = *state.table;
  if (driver.note_array != nullptr) driver.note_array(nullptr, 0);
  uint64_t* word = reading->words;
  uint64_t* leaf = reading->leaves;
  int ordinal = -1;
  const int device_type = state.device_type;
  for (const TritonStep *step = steps_, *end = steps_ + step_count_; step != end; ++step) {
    PyObject* object = step->argument >= 0 ? args[step->argument] : step->object;
    if (Py_TYPE(object) != step->type) return Outcome::kDifferent;
    // No switch: its indirect jump is rarely predicted after a launch.
    if (step->kind == TritonStep::kInt || step->kind == TritonStep::kConstantInt) {
      int64_t value;
      if (!ReadSmallInt(object, &value) && !ReadLargeInt(object, &value)) {
        return Outcome::kDifferent;
      }
      if (step->kind == TritonStep::kInt) {
        *leaf++ = static_cast<uint64_t>(value);
        *word++ = IntWord(value, step->specialize, step->align);
      } else {
        *word++ = static_cast<uint64_t>(value);
      }
    } else if (step->kind == TritonStep::kTensor) {
      DLTensor tensor;
      if (api_->dltensor_from_py_object_no_sync(object, &tensor) != 0) return Outcome::kFailed;
      if (tensor.device.device_id != ordinal || tensor.device.device_type != device_type) {
        // The first one; or there is a rule for it, or an error, on the general path.
        if (ordinal >= 0 || tensor.device.device_id < 0 ||
            tensor.device.device_type != device_type) {
          return Outcome::kDifferent;
        }
        ordinal = tensor.device.device_id;
      }
      if (driver.note_array != nullptr) {
        const Extent extent = ExtentOf(tensor);
        driver.note_array(extent.begin, extent.bytes);
      }
      const auto address = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
      *leaf++ = address;
      *word++ = MakeWord(TritonKind::kTensor, PackType(tensor.dtype),
                         KeyOfBits(address, step->specialize, step->align));
    } else if (step->kind == TritonStep::kFloat) {
      *leaf++ = SingleBits(ReadFloat(object));
    } else if (step->kind == TritonStep::kConstant) {
      if (object != step->object) return Outcome::kDifferent;
    } else {
      *leaf++ = object == Py_True ? 1 : 0;  // False and None are 0
    }
  }
  reading->ordinal = ordinal >= 0 ? ordinal : culaunch::CurrentDevice(driver);
  reading->device_type = device_type;
  *word++ = static_cast<uint64_t>(reading->ordinal);
  reading->word_count = static_cast<size_t>(word - reading->words);
  reading->leaf_count = static_cast<size_t>(leaf - reading->leaves);
  reading->leaves[kTritonNoLeaf] = 0;
  return Outcome::kSame;
}

TritonVariantObject* TritonForm::Find(const Reading& reading) {
  for (int i = 0; i < kVariants; ++i) {
    const auto slot = static_cast<uint8_t>((last_ + i) % kVariants);
    if (variants_[slot] == nullptr) continue;
    size_t same = 0;
    while (same < reading.word_count && reading.words[same] == words_[slot][same]) ++same;
    if (same != reading.word_count) continue;
    last_ = slot;
    return variants_[slot];
  }
  return nullptr;
}

void TritonForm::Add(const Reading& reading, TritonVariantObject* variant) {
  TritonVariantObject* old = variants_[next_];
  std::copy(reading.words, reading.words + reading.word_count, words_[next_]);
  Py_INCREF(reinterpret_cast<PyObject*>(variant));
  variants_[next_] = variant;
  last_ = next_;
  next_ = static_cast<uint8_t>((next_ + 1) % kVariants);
  Py_XDECREF(reinterpret_cast<PyObject*>(old));
}

TritonForm::~TritonForm() {
  for (size_t i = 0; i < step_count_; ++i) Py_XDECREF(steps_[i].object);
  for (TritonVariantObject* variant : variants_) {
    Py_XDECREF(reinterpret_cast<PyObject*>(variant));
  }
  Py_XDECREF(names_);
}

bool TritonForm::AddStep(TritonStep::Kind kind, PyObject* object, int argument) {
  if (step_count_ == kMost || argument > INT16_MAX) return false;
  TritonStep& step = steps_[step_count_++];
  step = {Py_TYPE(object), nullptr, static_cast<int16_t>(argument), kind, true, true};
  if (kind == TritonStep::kConstant || argument < 0) step.object = Ref::Borrow(object).release();
  return true;
}

// A run-time parameter's argument, of the kinds that most are.
bool TritonForm::AddArgument(const TritonParameter& parameter, PyObject* object, int argument) {
  TypeEntry scratch;
  const TypeEntry* entry = LookUpType(Py_TYPE(object), &scratch);
  if (entry == nullptr) PyErr_Clear();
  if (entry == nullptr || entry == &scratch) return false;
  if (parameter.forced.type_class != ForcedType::kNotForced) return false;
  TritonStep::Kind kind;
  if (entry->kind == ArgumentKind::kExchange) {
    if (api_ != nullptr && api_ != entry->api) return false;
    api_ = entry->api;
    kind = TritonStep::kTensor;
  } else if (PyLong_CheckExact(object)) {
    kind = TritonStep::kInt;
  } else if (PyFloat_CheckExact(object)) {
    kind = TritonStep::kFloat;
  } else if (PyBool_Check(object)) {
    kind = TritonStep::kBool;
  } else if (object == Py_None) {
    kind = TritonStep::kNone;
  } else {
    return false;
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
  size_t used = 0;
  for (const size_t i : state.runtime) {
    const TritonParameter& parameter = state.parameters[i];
    const int argument = ArgumentOf(parameter.name.get(), i, count, keyword_names);
    PyObject* object = argument >= 0 ? args[argument] : parameter.default_value.get();
    if (!form->AddArgument(parameter, object, argument)) return nullptr;
    used += argument >= 0 ? 1 : 0;
  }
  for (const size_t i : state.constants) {
    const int argument = ArgumentOf(state.parameters[i].name.get(), i, count, keyword_names);
    if (argument < 0) continue;  // the same for all calls of this form
    if (!form->AddConstant(state, args[argument], argument)) return nullptr;
    ++used;
  }
  // What is left are options.
  const Py_ssize_t size = keyword_names != nullptr ? PyTuple_Size(keyword_names) : 0;
  for (Py_ssize_t k = 0; k < size; ++k) {
    PyObject* name = PyTuple_GetItem(keyword_names, k);
    const bool is_parameter = std::any_of(
        state.parameters.get(), state.parameters.get() + state.count,
        [&](const TritonParameter& one) { return PyUnicode_Compare(one.name.get(), name) == 0; });
    if (is_parameter) continue;
    const int argument = static_cast<int>(count) + static_cast<int>(k);
    if (!form->AddConstant(state, args[argument], argument)) return nullptr;
    ++used;
  }
  return used == count + static_cast<size_t>(size) ? std::move(form) : nullptr;
}

void TritonForm::Learn(TritonState& state, PyObject* const* args, size_t count,
                       PyObject* keyword_names, TritonVariantObject* variant) {
#ifndef Py_GIL_DISABLED
  // Where the calls keep changing, learning costs more than it gives.
  constexpr unsigned kFreely = 64;
  if (++state.misses > kFreely && state.misses % 16 != 0) return;
  if (!variant->state->is_quick || state.reading != 0) return;
  for (TritonForm* form : state.retired) delete form;
  state.retired.clear();
  std::unique_ptr<TritonForm> made = Make(state, args, count, keyword_names);
  Reading reading;
  if (made == nullptr || made->Read(state, args, &reading) != Outcome::kSame) {
    PyErr_Clear();
    return;
  }
  const TritonVariantState& launched = *variant->state;
  for (size_t i = 0; i < launched.count; ++i) {
    const size_t leaf = launched.leaves[i];
    if (leaf != kTritonNoLeaf && leaf >= reading.leaf_count) return;
  }
  for (TritonForm* form : state.forms) {
    if (form != nullptr && form->IsLike(*made)) return form->Add(reading, variant);
  }
  made->Add(reading, variant);
  TritonForm*& slot = state.forms[state.next_form];
  state.next_form = (state.next_form + 1) % TritonState::kForms;
  if (slot != nullptr) Drop(state, slot);
  slot = made.release();
#else
  (void)state, (void)args, (void)count, (void)keyword_names, (void)variant;
#endif
}

int TritonForm::Traverse(visitproc visit, void* arg) const {
  for (size_t i = 0; i < step_count_; ++i) Py_VISIT(steps_[i].object);
  for (TritonVariantObject* variant : variants_) Py_VISIT(reinterpret_cast<PyObject*>(variant));
  return 0;
}

bool TritonForm::IsLike(const TritonForm& other) const {
  return count_ == other.count_ && names_ == other.names_ && api_ == other.api_ &&
         std::equal(steps_, steps_ + step_count_, other.steps_, other.steps_ + other.step_count_,
                    [](const TritonStep& a, const TritonStep& b) {
                      return a.type == b.type && a.object == b.object && a.kind == b.kind;
                    });
}

// A form that is being read goes later.
void TritonForm::Drop(TritonState& state, TritonForm* form) {
  if (state.reading != 0) {
    state.retired.push_back(form);
  } else {
    delete form;
  }
}

void TritonForm::ForgetAll(TritonState& state) {
  for (TritonForm*& form : state.forms) {
    TritonForm* old = form;
    form = nullptr;
    if (old != nullptr) Drop(state, old);
  }
  state.misses = 0;
}
