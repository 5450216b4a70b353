#include "triton_quick.h"

#include <culaunch/guard.h>

#include <algorithm>
#include <utility>

#include "half.h"
#include "numbers.h"
#include "torch_tensor.h"
#include "triton_launch.h"
#include "triton_launcher.h"

namespace {

// An int of more than one digit. False where it has more than 64 bits.
CULAUNCH_APART bool ReadLargeInt(PyObject* object, int64_t* value) {
  int overflow = 0;
  *value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

CULAUNCH_APART void Note(const culaunch::Driver& driver, const DLTensor& tensor) {
  const Extent extent = ExtentOf(tensor);
  driver.note_array(extent.begin, extent.bytes, culaunch::kNoteArray);
}

// Ask a grid that is a function, with the arguments by parameter, and the defaults.
CULAUNCH_APART bool Ask(PyObject* grid, const TritonState& state, PyObject* const* args,
                        size_t count, PyObject* keyword_names, const TritonFound& found,
                        uint32_t* dims) {
  const Ref dict(PyDict_New());
  for (size_t i = 0; dict && i < state.count; ++i) {
    const TritonParameter& parameter = state.parameters[i];
    const int argument = TritonArgumentOf(parameter.name.get(), i, count, keyword_names);
    PyObject* value = argument >= 0 ? args[argument] : parameter.default_value.get();
    if (found.choice != nullptr) {
      for (const auto& [index, chosen] : found.choice->constants) {
        if (index == i) value = chosen.get();
      }
    }
    if (value != nullptr && PyDict_SetItem(dict.get(), parameter.name.get(), value) < 0) {
      return false;
    }
  }
  return dict && AskTritonGrid(grid, dict.get(), *found.variant, dims);
}

// While one of these lives, what a form has learned is not freed.
class Use {
 public:
  explicit Use(TritonState& state) : state_(state) { ++state_.users; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() { --state_.users; }

 private:
  TritonState& state_;
};

}  // namespace

bool TritonForm::Call(TritonState& state, PyObject* grid, const uint32_t* dims,
                      PyObject* const* args, size_t count, PyObject* keyword_names,
                      PyObject** result) {
  const Use use(state);
  TritonForm* form = state.forms[0];
  Reading reading;
  Outcome outcome = Outcome::kDifferent;
  // One comparison: two branches may both be mistaken.
  const auto differs =
      (reinterpret_cast<uintptr_t>(form->names_) ^ reinterpret_cast<uintptr_t>(keyword_names)) |
      (form->count_ ^ count);
  if (!CULAUNCH_UNLIKELY(differs != 0)) outcome = form->Read(state, args, &reading);
  if (CULAUNCH_UNLIKELY(outcome != Outcome::kSame)) {
    *result = nullptr;
    outcome = ReadSlowly(state, args, count, keyword_names, outcome, &reading);
    if (outcome != Outcome::kSame) return outcome == Outcome::kFailed;
    form = state.forms[0];
  }
  const TritonFound& found = *form->last_;
  const DLPackExchangeAPI* api = form->api_;
  if (CULAUNCH_UNLIKELY(api == nullptr)) api = state.fallback;
  void* stream = nullptr;
  if (!CULAUNCH_UNLIKELY(api == nullptr || state.device_type == culaunch::kDLCPU) &&
      CULAUNCH_UNLIKELY(api->current_work_stream(state.device_type, reading.ordinal, &stream) !=
                        0)) {
    *result = nullptr;
    return true;
  }
  if (CULAUNCH_UNLIKELY(state.last_choice != found.choice)) state.last_choice = found.choice;
  uint32_t asked[3];
  if (CULAUNCH_UNLIKELY(dims == nullptr)) {
    *result = nullptr;
    if (!Ask(grid, state, args, count, keyword_names, found, asked)) return true;
    dims = asked;
  }
  *result = LaunchTriton(*found.state, dims, reading.ordinal, static_cast<CUstream>(stream),
                         reading.pointers);
  return true;
}

inline TritonForm::Outcome TritonForm::Read(const TritonState& state, PyObject* const* args,
                                            Reading* reading) const {
  const culaunch::Driver& driver = *state.table;
  const bool is_noted = driver.note_array != nullptr;
  if (CULAUNCH_UNLIKELY(is_noted)) driver.note_array(nullptr, 0, culaunch::kNoteLaunch);
  const TritonFound& found = *last_;
  const uint64_t* expected = found.words + 1;
  const uint8_t* slot = found.slots;
  uint64_t* word = reading->words + 1;
  uint64_t* leaf = reading->leaves;
  uint64_t difference = 0;
  int ordinal = -1;
  for (const TritonStep *step = steps_, *end = steps_ + step_count_; step != end; ++step) {
    PyObject* object = step->object;
    if (!CULAUNCH_UNLIKELY(step->argument < 0)) object = args[step->argument];
    if (CULAUNCH_UNLIKELY(Py_TYPE(object) != step->type)) return Outcome::kDifferent;
    // No switch: its indirect jump is rarely predicted after a launch.
    if (step->kind <= TritonStep::kKeyInt) {
      int64_t value;
      if (CULAUNCH_UNLIKELY(!ReadSmallInt(object, &value)) && !ReadLargeInt(object, &value)) {
        return Outcome::kDifferent;
      }
      *word = IntWord(value, step->specialize, step->align);
      difference |= *word++ ^ *expected++;
      if (CULAUNCH_UNLIKELY(step->kind == TritonStep::kKeyInt)) {
        *word = static_cast<uint64_t>(value);
        difference |= *word++ ^ *expected++;
      }
      reading->pointers[*slot++] = leaf;
      *leaf++ = static_cast<uint64_t>(value);
    } else if (step->kind == TritonStep::kTensor) {
      DLTensor tensor;
      const TensorRead read = ReadTensor(api_, object, &tensor);
      if (CULAUNCH_UNLIKELY(read != TensorRead::kDone)) {
        // A refused one comes to the general way, which names the argument.
        return read == TensorRead::kFailed ? Outcome::kFailed : Outcome::kDifferent;
      }
      if (CULAUNCH_UNLIKELY(is_noted)) Note(driver, tensor);
      // For an element type without a name, and elsewhere, there is a rule or an error.
      const int device = ordinal < 0 ? tensor.device.device_id : ordinal;
      const int differs = (tensor.device.device_id ^ device) |
                          (tensor.device.device_type ^ state.device_type) | (device & INT32_MIN) |
                          static_cast<int>(tensor.dtype.bits == 0);
      if (CULAUNCH_UNLIKELY(differs != 0)) return Outcome::kDifferent;
      ordinal = device;
      const auto address = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
      *word = MakeWord(TritonKind::kTensor, PackType(tensor.dtype),
                       KeyOfBits(address, step->specialize, step->align));
      difference |= *word++ ^ *expected++;
      reading->pointers[*slot++] = leaf;
      *leaf++ = address;
    } else if (step->kind == TritonStep::kConstantInt) {
      int64_t value;
      if (CULAUNCH_UNLIKELY(!ReadSmallInt(object, &value)) && !ReadLargeInt(object, &value)) {
        return Outcome::kDifferent;
      }
      *word = static_cast<uint64_t>(value);
      difference |= *word++ ^ *expected++;
    } else if (step->kind == TritonStep::kConstant) {
      if (CULAUNCH_UNLIKELY(object != step->object)) return Outcome::kDifferent;
    } else {
      reading->pointers[*slot++] = leaf;
      *leaf = object == Py_True ? 1 : 0;  // False and None are 0
      if (step->kind == TritonStep::kFloat) *leaf = SingleBits(ReadFloat(object));
      ++leaf;
    }
  }
  if (CULAUNCH_UNLIKELY(ordinal < 0)) ordinal = culaunch::CurrentDevice(driver);
  reading->ordinal = ordinal;
  reading->words[0] = static_cast<uint64_t>(ordinal);
  difference |= reading->words[0] ^ found.words[0];
  reading->pointers[found.nulls[0]] = &reading->null;
  reading->pointers[found.nulls[1]] = &reading->null;
  return CULAUNCH_UNLIKELY(difference != 0) ? Outcome::kOther : Outcome::kSame;
}

CULAUNCH_RARE bool TritonForm::ReadWords(const TritonState& state, PyObject* const* args,
                                         uint64_t* words) const {
  Reading reading;
  const Outcome outcome = Read(state, args, &reading);
  if (outcome == Outcome::kFailed) PyErr_Clear();
  if (outcome == Outcome::kFailed || outcome == Outcome::kDifferent) return false;
  std::copy(reading.words, reading.words + word_count_, words);
  return true;
}

// Another variant of this form becomes the last one.
bool TritonForm::FindOther(Reading* reading) {
  for (const std::unique_ptr<TritonFound>& one : found_) {
    if (one == nullptr) return false;
    if (!std::equal(reading->words, reading->words + word_count_, one->words)) continue;
    last_ = one.get();
    for (size_t i = 0; i < leaf_count_; ++i) {
      reading->pointers[last_->slots[i]] = reading->leaves + i;
    }
    for (const uint8_t slot : last_->nulls) reading->pointers[slot] = &reading->null;
    return true;
  }
  return false;
}

CULAUNCH_APART TritonForm::Outcome TritonForm::ReadSlowly(TritonState& state, PyObject* const* args,
                                                          size_t count, PyObject* keyword_names,
                                                          Outcome outcome, Reading* reading) {
  for (int i = 0; i < TritonState::kForms && state.forms[i] != nullptr; ++i) {
    TritonForm* form = state.forms[i];
    if (form->count_ != count || form->names_ != keyword_names) continue;
    if (i > 0) outcome = form->Read(state, args, reading);
    if (outcome == Outcome::kDifferent) continue;
    if (outcome == Outcome::kOther) {
      outcome = form->FindOther(reading) ? Outcome::kSame : Outcome::kOther;
    }
    std::swap(state.forms[0], state.forms[i]);
    return outcome;
  }
  return Outcome::kDifferent;
}
