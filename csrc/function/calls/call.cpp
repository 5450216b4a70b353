#include "function/calls/call.h"

#include "arguments/torch/tensor.h"
#include "driver/driver_in_use.h"
#include "driver/errors.h"
#include "function/plans/gather.h"
#include "python/numbers.h"
#include "python/text_of.h"
#include "python/upcalls.h"

namespace function {

std::string FunctionCall::What(size_t parameter) const {
  return TextOf(state_.name.get()) + ": argument " +
         TextOf(state_.parameters[parameter].name.get());
}

// ---- reading arguments of a known kind

inline FunctionCall::Reading FunctionCall::ReadTensorAs(const Step& step, const Program& program,
                                                        size_t array, PyObject* object) {
  const TypeEntry* entry = step.entry.load(std::memory_order_acquire);
  if (CULAUNCH_UNLIKELY(entry == nullptr || entry->type != Py_TYPE(object))) {
    return Reading::kOther;
  }
  DLTensor tensor;
  const TensorRead read = ReadTensor(entry->api, object, &tensor);
  if (CULAUNCH_UNLIKELY(read != TensorRead::kDone)) {
    return read == TensorRead::kFailed ? Reading::kFailed : Reading::kOther;
  }
  if (place_.first == nullptr) {
    place_.first = object;
    place_.entry = entry;
    place_.device = tensor.device;
  }
  // One comparison instead of several branches, because each could be mispredicted.
  const auto differs =
      (PackType(tensor.dtype) ^ step.type) | static_cast<uint32_t>(tensor.ndim ^ step.rank) |
      static_cast<uint32_t>(tensor.device.device_type ^ place_.device.device_type) |
      static_cast<uint32_t>(tensor.device.device_id ^ place_.device.device_id) |
      static_cast<uint32_t>(entry->api != place_.entry->api) |
      static_cast<uint32_t>(step.is_read_only);
  if (CULAUNCH_UNLIKELY(differs != 0)) return Reading::kOther;
  ArrayValue& value = arrays_[array];
  value.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  value.object = object;
  value.number = step.number;
  value.effect = nullptr;
  value.base = static_cast<int32_t>(array);
  if (CULAUNCH_UNLIKELY(IsWatched(program, array))) {
    const Extent extent = ExtentOf(tensor);
    value.begin = static_cast<const char*>(extent.begin);
    value.bytes = extent.bytes;
  }
  GatherArray(program, array, value.data, tensor.shape, tensor.strides, tensor.ndim,
              inputs_.data());
  return Reading::kSame;
}

CULAUNCH_APART FunctionCall::Reading FunctionCall::ReadItemsAs(const Step& sequence,
                                                               const Program& program, size_t array,
                                                               PyObject* object) {
  PyObject* items = object;
  if (sequence.code == Step::kTuple) {
    if (!PyTuple_Check(object)) return Reading::kOther;
  } else {
    if (!PyList_Check(object)) return Reading::kOther;
    // Another thread may change the list, so keep the items that are read.
    owners_.emplace_back(PyList_AsTuple(object));
    items = owners_.back().get();
    if (items == nullptr) return Reading::kFailed;
  }
  if (PyTuple_Size(items) != sequence.items) return Reading::kOther;
  for (int32_t i = 0; i < sequence.items; ++i) {
    const Reading reading = ReadTensorAs((&sequence)[1 + i], program,
                                         array + static_cast<size_t>(i), PyTuple_GetItem(items, i));
    if (reading != Reading::kSame) return reading;
  }
  return Reading::kSame;
}

FunctionCall::Reading FunctionCall::ReadAs(Kind& kind) {
  if (!TakeProgram(kind)) return Reading::kOther;
  const Program& program = *program_;
  place_ = CallPlace();
  place_.driver = state_.driver.load(std::memory_order_acquire);
  if (CULAUNCH_UNLIKELY(place_.driver == nullptr)) return Reading::kOther;
  size_t array = 0;
  const int32_t* input = program.number_inputs;
  PyObject* const* argument = args_;
  const Step* const end = kind.steps.data() + kind.steps.size();
  for (const Step* step = kind.steps.data(); step != end; ++step, ++input) {
    PyObject* object = *argument++;
    // No switch, because its indirect jump is rarely predicted after a launch.
    if (step->code == Step::kArray) {
      const Reading reading = ReadTensorAs(*step, program, array++, object);
      if (CULAUNCH_UNLIKELY(reading != Reading::kSame)) return reading;
    } else if (step->code == Step::kInt) {
      int64_t value;
      if (CULAUNCH_UNLIKELY(!PyLong_CheckExact(object)) ||
          CULAUNCH_UNLIKELY(ReadInt(object, &value) != IntRange::kSigned)) {
        return Reading::kOther;
      }
      if (*input >= 0) inputs_[static_cast<size_t>(*input)] = value;
    } else if (step->code == Step::kFloat) {
      if (CULAUNCH_UNLIKELY(!PyFloat_CheckExact(object))) return Reading::kOther;
      if (*input >= 0) inputs_[static_cast<size_t>(*input)] = FromFloat(ReadFloat(object));
    } else if (step->code == Step::kNone) {
      if (CULAUNCH_UNLIKELY(object != Py_None)) return Reading::kOther;
    } else if (step->code == Step::kStatic) {
      const int is_same = IsSameStatic(step->value.get(), object);
      if (CULAUNCH_UNLIKELY(is_same != 1)) {
        return is_same < 0 ? Reading::kFailed : Reading::kOther;
      }
    } else {
      const Reading reading = ReadItemsAs(*step, program, array, object);
      if (reading != Reading::kSame) return reading;
      array += static_cast<size_t>(step->items);
      step += step->items;
    }
  }
  if (place_.first == nullptr) return FinishPlace() ? Reading::kSame : Reading::kFailed;
  if (CULAUNCH_UNLIKELY(place_.device.device_type !=
                        state_.device_type.load(std::memory_order_relaxed)) ||
      CULAUNCH_UNLIKELY(program.driver != nullptr && program.driver != place_.driver)) {
    return Reading::kOther;
  }
  if (place_.device.device_type != culaunch::kDLCPU) {
    void* stream = nullptr;
    if (CULAUNCH_UNLIKELY(place_.entry->api->current_work_stream(
                              place_.device.device_type, place_.device.device_id, &stream) != 0)) {
      return Reading::kFailed;
    }
    place_.stream = static_cast<CUstream>(stream);
  }
  if (program.device_input >= 0) {
    inputs_[static_cast<size_t>(program.device_input)] = place_.device.device_id;
  }
  return Reading::kSame;
}

bool FunctionCall::TakeProgram(Kind& kind) {
  held_ = state_.ProgramOf(kind);
  if (!held_) return false;
  program_ = reinterpret_cast<ProgramObject*>(held_.get())->program;
  if (CULAUNCH_UNLIKELY(program_->arrays > 16)) arrays_.Grow(program_->arrays, 0);
  if (CULAUNCH_UNLIKELY(program_->inputs.size() > 64)) inputs_.Grow(program_->inputs.size(), 0);
  return true;
}

// For a call without an array: the current device, and its default stream.
bool FunctionCall::FinishPlace() {
  if (program_->driver != nullptr) {
    place_.driver = program_->driver;
  } else {
    place_.driver = CurrentDriver();
    if (place_.driver == nullptr) return false;
  }
  const int ordinal = culaunch::CurrentDevice(*place_.driver);
  place_.device = {place_.driver->device_types().front(), ordinal};
  if (program_->device_input >= 0) {
    inputs_[static_cast<size_t>(program_->device_input)] = ordinal;
  }
  return true;
}

FunctionCall::Found FunctionCall::Find() {
  Kind* last = state_.last.load(std::memory_order_acquire);
  if (!CULAUNCH_UNLIKELY(last == nullptr)) {
    const Reading reading = ReadAs(*last);
    if (!CULAUNCH_UNLIKELY(reading != Reading::kSame)) return Found::kFound;
    if (reading == Reading::kFailed) return Found::kFailed;
    // Each kind that is tried reads the arguments again. After a few tries, determine their kind
    // first.
    int tries = 4;
    for (Kind* it = state_.kinds.load(std::memory_order_acquire); it != nullptr; it = it->next) {
      if (it == last) continue;
      if (tries-- == 0) break;
      const Reading other = ReadAs(*it);
      if (other == Reading::kFailed) return Found::kFailed;
      if (other == Reading::kSame) {
        state_.last.store(it, std::memory_order_release);
        return Found::kFound;
      }
    }
  }
  Kind kind;
  if (!ReadGenerally(&kind)) return Found::kFailed;
  Kind* known = state_.Find(kind);
  if (known == nullptr && PyErr_Occurred() != nullptr) return Found::kFailed;
  if (known == nullptr || !TakeProgram(*known)) {
    return Trace() ? Found::kUnknown : Found::kFailed;
  }
  if (!GatherOperands(*known)) return Found::kFailed;
  state_.last.store(known, std::memory_order_release);
  return Found::kFound;
}

// ---- the call

Ref FunctionCall::Arguments() const {
  Ref arguments(PyTuple_New(static_cast<Py_ssize_t>(state_.parameters.size())));
  for (size_t i = 0; arguments && i < state_.parameters.size(); ++i) {
    PyTuple_SetItem(arguments.get(), static_cast<Py_ssize_t>(i), Ref::Borrow(args_[i]).release());
  }
  return arguments;
}

PyObject* FunctionCall::Refused() const {
  const bool was_refused = WasRefused();
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return nullptr;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (!was_refused && !IsOfJax()) {
    PyErr_Restore(type, value, trace);
    return nullptr;
  }
  if (trace != nullptr) PyException_SetTraceback(value, trace);
  const Ref types(type), error(value), traces(trace);
  const Ref arguments = Arguments();
  if (!arguments) return nullptr;
  return PyObject_CallMethod(state_.self, methods::kRefused, "OO", arguments.get(), error.get());
}

PyObject* FunctionCall::Seen() const {
  const Ref arguments = Arguments();
  if (!arguments) return nullptr;
  return PyObject_CallMethod(state_.self, methods::kRefused, "OO", arguments.get(), Py_None);
}

bool FunctionCall::Trace() {
  const Ref arguments = Arguments();
  if (!arguments) return false;
  const Ref done(PyObject_CallMethod(state_.self, methods::kTrace, "(O)", arguments.get()));
  return static_cast<bool>(done);
}

bool FunctionCall::CheckGradients() const {
  if (!program_->computes || place_.entry == nullptr || !place_.entry->is_torch) return true;
  for (size_t i = 0; i < program_->argument_arrays; ++i) {
    PyObject* array = arrays_[i].object;
    if (!MayRequireGrad(place_.entry->api, array)) continue;
    const int is_followed = MayBeFollowed(array);
    if (is_followed < 0) return false;
    if (is_followed == 1 && !CheckGradient(What(ParameterOf(array)).c_str(), array)) return false;
  }
  return true;
}

size_t FunctionCall::ParameterOf(PyObject* array) const {
  for (size_t i = 0; i < state_.parameters.size(); ++i) {
    if (args_[i] == array) return i;
  }
  for (size_t i = 0; i < state_.parameters.size(); ++i) {
    if (PyList_Check(args_[i]) == 0 && PyTuple_Check(args_[i]) == 0) continue;
    const int found = PySequence_Contains(args_[i], array);
    if (found == 1) return i;
    PyErr_Clear();
  }
  return 0;
}

bool FunctionCall::CheckWatch() {
  Watch* watch = state_.watch.load(std::memory_order_acquire);
  if (watch == nullptr || watch->HoldsAtAGlance()) return true;
  if (CULAUNCH_UNLIKELY(!watch->Holds())) {
    if (PyErr_Occurred() != nullptr) return false;
    state_.Forget();
  }
  return true;
}

Ref FunctionCall::DescribeKind() {
  Kind kind;
  return ReadGenerally(&kind) ? kind.Describe() : Ref();
}

}  // namespace function
