#include "triton/quick/form.h"

#include <culaunch/guard.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "arguments/torch/tensor.h"
#include "arguments/views/storage.h"
#include "formats/half.h"
#include "python/numbers.h"
#include "python/upcalls.h"
#include "triton/dispatchers/zeroes.h"
#include "triton/grids/grid.h"
#include "triton/variants/launch.h"

namespace triton {

namespace {

// Report the arrays that the next launch may touch to the driver. Call this right before the
// launch: a call from within the reading begins another list.
CULAUNCH_APART void Tell(const culaunch::Driver& driver, const NotedMemory* noted, size_t count) {
  driver.note_array(nullptr, 0, culaunch::kNoteLaunch);
  for (size_t i = 0; i < count; ++i) {
    driver.note_array(noted[i].begin, noted[i].bytes, noted[i].note);
  }
}

CULAUNCH_APART size_t Note(PyObject* object, const DLTensor& tensor, NotedMemory* noted) {
  const Extent extent = ExtentOf(tensor);
  const Extent storage = StorageOf(object, extent).extent;
  noted[0] = {extent.begin, extent.bytes, culaunch::kNoteArray};
  noted[1] = {storage.begin, storage.bytes, culaunch::kNoteStorage};
  return storage.bytes != 0 ? 2 : 1;
}

// Whether an int fits this many bits. A negative number of bits is signed.
bool FitsForced(int64_t value, int bits) {
  if (bits < 0)
    return static_cast<int64_t>(static_cast<uint64_t>(value) << (64 + bits)) >> (64 + bits) ==
           value;
  return value >= 0 && (bits == 64 || value >> bits == 0);
}

// The value of a float or a bool, or of None.
uint64_t KeyBits(PyObject* object) {
  if (PyFloat_CheckExact(object) == 0) return object == Py_True ? 1 : 0;
  const double value = ReadFloat(object);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

bool SetLastChoice(State& state, std::shared_ptr<const TunedChoice> choice) {
  state.last_choice = std::move(choice);
  if (!state.tells_choices || state.last_choice == nullptr) return true;
  const Ref config = Ref::Borrow(state.last_choice->config.get());
  const Ref none(PyObject_CallMethod(state.self, methods::kChose, "(O)", config.get()));
  return static_cast<bool>(none);
}

bool Form::Call(State& state, const uint32_t* dims, PyObject* const* args, size_t count,
                PyObject* keyword_names, PyObject** result) {
  const StateUse use(state);
  Reading reading;
  const Outcome outcome = Find(state, args, count, keyword_names, &reading);
  if (CULAUNCH_UNLIKELY(outcome != Outcome::kSame)) {
    *result = nullptr;
    return outcome == Outcome::kFailed;
  }
  const QuickArguments arguments(state, args, count, keyword_names, reading.found);
  return LaunchFound(state, reading, dims, arguments, result);
}

inline bool Form::LaunchFound(State& state, Reading& reading, const uint32_t* dims,
                              const QuickArguments& arguments, PyObject** result) {
  const QuickVariant& found = *reading.found;
  const DLPackExchangeAPI* api = reading.form->api_;
  if (CULAUNCH_UNLIKELY(api == nullptr)) api = state.fallback;
  void* stream = nullptr;
  if (!CULAUNCH_UNLIKELY(api == nullptr || state.device_type == culaunch::kDLCPU) &&
      CULAUNCH_UNLIKELY(api->current_work_stream(state.device_type, reading.ordinal, &stream) !=
                        0)) {
    *result = nullptr;
    return true;
  }
  if (CULAUNCH_UNLIKELY(state.sets_to_zero)) {
    const Zeroing zeroing =
        SetToZero(state, arguments, reading.ordinal, static_cast<CUstream>(stream));
    *result = nullptr;
    if (zeroing != Zeroing::kDone) return zeroing == Zeroing::kFailed;
  }
  if (CULAUNCH_UNLIKELY(state.last_choice != found.choice) && !SetLastChoice(state, found.choice)) {
    *result = nullptr;
    return true;
  }
  ++*state.launches;
  if (CULAUNCH_UNLIKELY(state.table->note_array != nullptr)) {
    Tell(*state.table, reading.noted, reading.noted_count);
  }
  *result = LaunchVariant(*found.state, dims, reading.ordinal, static_cast<CUstream>(stream),
                          reading.pointers);
  return true;
}

PyObject* Form::LastNames(const State& state) {
  return state.forms[0] != nullptr ? state.forms[0]->names_ : nullptr;
}

bool Form::Arrange(const State& state, PyObject* args, PyObject* keywords, PyObject** arranged) {
  const Form* form = state.forms[0];
  if (form == nullptr || form->names_ == nullptr) return false;
  const size_t count = form->count_;
  const size_t size = form->each_name_.size();
  if (static_cast<size_t>(PyTuple_Size(args)) != count || count + size > kMost ||
      static_cast<size_t>(PyDict_Size(keywords)) != size) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    arranged[i] = PyTuple_GetItem(args, static_cast<Py_ssize_t>(i));
  }
  arranged += count;
  PyObject* name = nullptr;
  Py_ssize_t position = 0;
  for (PyObject* const expected : form->each_name_) {
    if (PyDict_Next(keywords, &position, &name, arranged++) == 0 || name != expected) return false;
  }
  return true;
}

CULAUNCH_APART bool Form::CallAsking(State& state, PyObject* grid, uint32_t* asked,
                                     const uint32_t** dims, PyObject* const* args, size_t count,
                                     PyObject* keyword_names, PyObject** result) {
  const StateUse use(state);
  const QuickVariant* found = nullptr;
  Reading reading;
  if (state.is_tuned || state.variants_have_constants) {
    // The argument of the function depends on the types of the arguments.
    const Outcome outcome = Find(state, args, count, keyword_names, &reading);
    *result = nullptr;
    if (outcome != Outcome::kSame) return outcome == Outcome::kFailed;
    found = reading.found;
  }
  *result = nullptr;
  const QuickArguments arguments(state, args, count, keyword_names, found);
  const bool is_known = state.grids.Find(grid, arguments, asked);
  if (is_known && !CULAUNCH_UNLIKELY(state.checks != 0)) {
    *dims = asked;
    if (found != nullptr) return LaunchFound(state, reading, asked, arguments, result);
    return Call(state, asked, args, count, keyword_names, result);
  }
  uint32_t known[3];
  if (is_known) std::copy(asked, asked + 3, known);
  // Without a Python error, an argument is missing, and the general path names it.
  if (!arguments.Ask(grid, asked)) return PyErr_Occurred() != nullptr;
  if (is_known && !IsSameGrid(grid, known, asked)) return true;
  if (!is_known && !state.grids.Learn(state.self, grid, arguments, asked)) return true;
  if (found == nullptr) *dims = asked;
  if (state.forms[0] == nullptr) return false;  // the function cleared all forms
  if (found == nullptr) return Call(state, asked, args, count, keyword_names, result);
  // If the function changed the arguments to those of another variant, the general path asks it
  // again.
  const Outcome outcome = Find(state, args, count, keyword_names, &reading);
  if (outcome == Outcome::kFailed) return true;
  if (outcome != Outcome::kSame || reading.found != found) return false;
  *dims = asked;
  return LaunchFound(state, reading, asked, arguments, result);
}

inline Form::Outcome Form::Find(State& state, PyObject* const* args, size_t count,
                                PyObject* keyword_names, Reading* reading) {
  Form* form = state.forms[0];
  Outcome outcome = Outcome::kDifferent;
  // One comparison instead of two branches, because both could be mispredicted.
  const auto differs =
      (reinterpret_cast<uintptr_t>(form->names_) ^ reinterpret_cast<uintptr_t>(keyword_names)) |
      (form->count_ ^ count);
  if (!CULAUNCH_UNLIKELY(differs != 0)) outcome = form->Read(state, args, *form->last_, reading);
  if (!CULAUNCH_UNLIKELY(outcome != Outcome::kSame)) return outcome;
  return ReadSlowly(state, args, count, keyword_names, form, outcome, reading);
}

inline Form::Outcome Form::Read(const State& state, PyObject* const* args,
                                const QuickVariant& found, Reading* reading) const {
  const culaunch::Driver& driver = *state.table;
  const bool is_noted = driver.note_array != nullptr;
  reading->form = this;
  reading->found = &found;
  const uint64_t* expected = found.words + 1;
  const uint8_t* slot = found.slots;
  uint64_t* word = reading->words + 1;
  uint64_t* leaf = reading->leaves;
  uint64_t difference = 0;
  int ordinal = -1;
  size_t noted = 0;
  for (const Step *step = steps_, *end = steps_ + step_count_; step != end; ++step) {
    PyObject* object = step->object;
    if (!CULAUNCH_UNLIKELY(step->argument < 0)) object = args[step->argument];
    if (CULAUNCH_UNLIKELY(Py_TYPE(object) != step->type)) return Outcome::kDifferent;
    // No switch, because its indirect jump is rarely predicted after a launch.
    if (step->kind <= Step::kForcedInt) {
      int64_t value;
      if (CULAUNCH_UNLIKELY(ReadInt(object, &value) != IntRange::kSigned)) {
        return Outcome::kDifferent;
      }
      *word = IntWord(value, step->specialize, step->align);
      if (CULAUNCH_UNLIKELY(step->kind != Step::kInt)) {
        if (step->kind == Step::kKeyInt) {
          difference |= *word++ ^ *expected++;
          *word = static_cast<uint64_t>(value);
        } else if (FitsForced(value, step->bits)) {
          *word = MakeWord(WordKind::kForced, 0, KeyOf(*word));
        } else {
          return Outcome::kDifferent;  // the general path reports the problem
        }
      }
      difference |= *word++ ^ *expected++;
      reading->pointers[*slot++] = leaf;
      *leaf++ = static_cast<uint64_t>(value);
    } else if (step->kind == Step::kTensor) {
      DLTensor tensor;
      const TensorRead read = ReadTensor(api_, object, &tensor);
      if (CULAUNCH_UNLIKELY(read != TensorRead::kDone)) {
        // The general path names the argument that was refused.
        return read == TensorRead::kFailed ? Outcome::kFailed : Outcome::kDifferent;
      }
      if (CULAUNCH_UNLIKELY(is_noted)) noted += Note(object, tensor, reading->noted + noted);
      // An element type without a name, or an array elsewhere, takes the general path.
      const int device = ordinal < 0 ? tensor.device.device_id : ordinal;
      const int differs = (tensor.device.device_id ^ device) |
                          (tensor.device.device_type ^ state.device_type) | (device & INT32_MIN) |
                          static_cast<int>(tensor.dtype.bits == 0);
      if (CULAUNCH_UNLIKELY(differs != 0)) return Outcome::kDifferent;
      ordinal = device;
      const auto address = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
      *word = MakeWord(WordKind::kTensor, PackType(tensor.dtype),
                       KeyOfBits(address, step->specialize, step->align));
      difference |= *word++ ^ *expected++;
      if (CULAUNCH_UNLIKELY(step->shape_count != 0)) {
        const KeyPart* part = state.shape_key.data() + step->shape_part;
        for (const KeyPart* last = part + step->shape_count; part != last; ++part) {
          if (!ReadShapePart(*part, tensor, word)) return Outcome::kDifferent;
          difference |= *word++ ^ *expected++;
        }
      }
      reading->pointers[*slot++] = leaf;
      *leaf++ = address;
    } else if (step->kind == Step::kConstantInt) {
      int64_t value;
      if (CULAUNCH_UNLIKELY(ReadInt(object, &value) != IntRange::kSigned)) {
        return Outcome::kDifferent;
      }
      *word = static_cast<uint64_t>(value);
      difference |= *word++ ^ *expected++;
    } else if (step->kind == Step::kConstant) {
      if (CULAUNCH_UNLIKELY(object != step->object)) return Outcome::kDifferent;
    } else {
      reading->pointers[*slot++] = leaf;
      *leaf = object == Py_True ? 1 : 0;  // False and None are 0
      if (step->kind == Step::kFloat) *leaf = SingleBits(ReadFloat(object));
      if (CULAUNCH_UNLIKELY(step->is_key)) {
        *word = KeyBits(object);
        difference |= *word++ ^ *expected++;
      }
      ++leaf;
    }
  }
  reading->noted_count = noted;
  if (CULAUNCH_UNLIKELY(ordinal < 0)) ordinal = culaunch::CurrentDevice(driver);
  reading->ordinal = ordinal;
  reading->words[0] = static_cast<uint64_t>(ordinal);
  difference |= reading->words[0] ^ found.words[0];
  reading->pointers[found.nulls[0]] = &reading->null;
  reading->pointers[found.nulls[1]] = &reading->null;
  return CULAUNCH_UNLIKELY(difference != 0) ? Outcome::kOther : Outcome::kSame;
}

CULAUNCH_RARE bool Form::ReadWords(const State& state, PyObject* const* args,
                                   const CallOutcome& outcome, QuickVariant* found) const {
  Reading reading;
  const Outcome read = Read(state, args, *found, &reading);
  if (read == Outcome::kFailed) PyErr_Clear();
  if (read == Outcome::kFailed || read == Outcome::kDifferent) return false;
  if (!AreWordsOf(outcome, reading.words)) return false;
  std::copy(reading.words, reading.words + word_count_, found->words);
  return true;
}

// Select another variant of this form as the last one.
bool Form::FindOther(Reading* reading) {
  for (const std::unique_ptr<QuickVariant>& one : found_) {
    if (one == nullptr) return false;
    if (!std::equal(reading->words, reading->words + word_count_, one->words)) continue;
    last_ = one.get();
    reading->found = last_;
    for (size_t i = 0; i < leaf_count_; ++i) {
      reading->pointers[last_->slots[i]] = reading->leaves + i;
    }
    for (const uint8_t slot : last_->nulls) reading->pointers[slot] = &reading->null;
    return true;
  }
  return false;
}

// `outcome` is the result of reading for the form `first`.
CULAUNCH_APART Form::Outcome Form::ReadSlowly(State& state, PyObject* const* args, size_t count,
                                              PyObject* keyword_names, const Form* first,
                                              Outcome outcome, Reading* reading) {
  if (outcome == Outcome::kFailed) return outcome;
  // Reading may change the forms and their order.
  Form* forms[State::kForms];
  std::copy(state.forms, state.forms + State::kForms, forms);
  for (Form* form : forms) {
    if (form == nullptr) break;
    if (form->count_ != count || !AreSameNames(form->names_, keyword_names)) continue;
    const bool is_read = form == first && form->names_ == keyword_names;
    if (!is_read) outcome = form->Read(state, args, *form->last_, reading);
    if (outcome == Outcome::kDifferent) continue;
    if (outcome == Outcome::kOther && form->FindOther(reading)) outcome = Outcome::kSame;
    if (form->names_ != keyword_names) state.style.NoteOtherNames(keyword_names);
    Form** place = std::find(state.forms, state.forms + State::kForms, form);
    if (place != state.forms + State::kForms) std::swap(state.forms[0], *place);
    return outcome;
  }
  return Outcome::kDifferent;
}

}  // namespace triton
