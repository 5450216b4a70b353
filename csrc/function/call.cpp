#include "function/call.h"

#include <cstring>

#include "arguments/torch_tensor.h"
#include "driver/driver_object.h"
#include "driver/errors.h"
#include "python/numbers.h"
#include "python/upcalls.h"

namespace function {

namespace {

constexpr Word kAddresses = 256;  // ADDRESS is modulo this: what an allocator promises at most

Word IsContiguous(const int64_t* shape, const int64_t* strides, int ndim) {
  if (strides == nullptr) return 1;
  int64_t dense = 1;
  bool is_dense = true;
  for (int i = ndim; i-- > 0;) {
    if (shape[i] == 0) return 1;
    is_dense = is_dense && (shape[i] == 1 || strides[i] == dense);
    dense *= shape[i];
  }
  return is_dense ? 1 : 0;
}

int64_t StrideOf(const int64_t* shape, const int64_t* strides, int ndim, int axis) {
  if (strides != nullptr) return strides[axis];
  int64_t dense = 1;
  for (int i = ndim - 1; i > axis; --i) dense *= shape[i];
  return dense;
}

Word FloatWord(double value) {
  Word word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

// Put what an error is about before its message.
void NameError(const std::string& what) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const Ref message(value != nullptr ? PyObject_Str(value) : nullptr);
  const bool is_mistake =
      type == PyExc_TypeError || type == PyExc_ValueError || type == PyExc_OverflowError;
  if (message && is_mistake) {
    PyErr_Format(type, "%s%U", what.c_str(), message.get());
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
  } else {
    PyErr_Restore(type, value, trace);
  }
}

std::string TextOf(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  return data != nullptr ? std::string(data, static_cast<size_t>(size)) : std::string();
}

}  // namespace

std::string FunctionCall::What(size_t parameter) const {
  return TextOf(state_.name.get()) + ": argument " +
         TextOf(state_.parameters[parameter].name.get());
}

// ---- reading as the calls before

inline void FunctionCall::GatherTensor(const Program& program, size_t array, const int64_t* shape,
                                       const int64_t* strides, int ndim) {
  const uint32_t end = program.array_inputs[array + 1];
  for (uint32_t i = program.array_inputs[array]; i < end; ++i) {
    const Input& input = program.inputs[i];
    if (input.kind == Input::kDim) {
      inputs_[i] = shape[input.axis];
    } else if (input.kind == Input::kContiguous) {
      inputs_[i] = IsContiguous(shape, strides, ndim);
    } else if (input.kind == Input::kStride) {
      inputs_[i] = StrideOf(shape, strides, ndim, input.axis);
    } else {
      inputs_[i] = static_cast<Word>(reinterpret_cast<uintptr_t>(arrays_[array].data) %
                                     static_cast<uintptr_t>(kAddresses));
    }
  }
}

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
  // One comparison: several branches may each be mistaken.
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
  GatherTensor(program, array, tensor.shape, tensor.strides, tensor.ndim);
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
    // Another thread may change the list: the items that are read are kept.
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
    // No switch: its indirect jump is rarely predicted after a launch.
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
      if (*input >= 0) inputs_[static_cast<size_t>(*input)] = FloatWord(ReadFloat(object));
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

// Of a call without an array: the current device, and its default stream.
bool FunctionCall::FinishPlace() {
  if (program_->driver != nullptr) {
    place_.driver = program_->driver;
  } else {
    const Ref current = CallUp(Upcall::kCurrentDriver);
    place_.driver = current ? DriverOf(current.get()) : nullptr;
    if (place_.driver == nullptr) return false;
  }
  const int ordinal = culaunch::CurrentDevice(*place_.driver);
  place_.device = {place_.driver->device_types().front(), ordinal};
  if (program_->device_input >= 0) {
    inputs_[static_cast<size_t>(program_->device_input)] = ordinal;
  }
  return true;
}

// ---- reading whatever comes

// A NumPy scalar counts as the Python number that it is equal to.
bool FunctionCall::ReadScalar(size_t index, const operands::Operand& operand, Kind* kind) {
  PyObject* object = args_[index];
  const TypeClass scalar = operand.entry->scalar_class;
  const std::string root = operands::ModuleRoot(Py_TYPE(object));
  const bool is_numpy = root != "ctypes" && root != "_ctypes";
  if (is_numpy && (scalar == TypeClass::kSigned || scalar == TypeClass::kUnsigned)) {
    owners_.emplace_back(PyNumber_Index(object));
    kind->Add(Step::kInt);
  } else if (is_numpy && scalar == TypeClass::kFloat) {
    owners_.emplace_back(PyNumber_Float(object));
    kind->Add(Step::kFloat);
  } else if (is_numpy && scalar == TypeClass::kBool) {
    const int truth = PyObject_IsTrue(object);
    owners_.push_back(Ref::Borrow(truth != 0 ? Py_True : Py_False));
    if (truth < 0) return false;
    kind->Add(Step::kStatic).value = Ref::Borrow(owners_.back().get());
  } else {
    PyErr_Format(PyExc_TypeError, "%s is a %R: pass a Python number, or one of NumPy",
                 What(index).c_str(), reinterpret_cast<PyObject*>(Py_TYPE(object)));
    return false;
  }
  PyObject* number = owners_.back().get();
  if (number == nullptr) return false;
  int64_t value = 0;
  if (PyLong_Check(number) && ReadInt(number, &value) != IntRange::kSigned) {
    PyErr_Format(PyExc_OverflowError, "%s must fit 64 bits (got %S)", What(index).c_str(), number);
    return false;
  }
  numbers_[index] = number;
  return true;
}

void FunctionCall::AddArray(std::unique_ptr<operands::Operand> operand, bool is_item, Kind* kind) {
  Step& step = kind->Add(Step::kArray, is_item);
  step.number = operand->number;
  step.rank = operand->ndim;
  step.is_read_only = operand->is_read_only;
  step.type = PackType(operands::TypeOf(operand->number));
  operands_.push_back(std::move(operand));
}

// A list or tuple of arrays. False where it is none, perhaps with a Python error set.
bool FunctionCall::ReadSequence(size_t index, PyObject* object, Kind* kind) {
  const bool is_list = PyList_Check(object) != 0;
  owners_.push_back(is_list ? Ref(PyList_AsTuple(object)) : Ref::Borrow(object));
  PyObject* items = owners_.back().get();
  const Py_ssize_t size = items != nullptr ? PyTuple_Size(items) : 0;
  static const std::string none;
  for (Py_ssize_t i = 0; i < size; ++i) {
    auto operand = std::make_unique<operands::Operand>();
    PyObject* item = PyTuple_GetItem(items, i);
    const bool is_number = PyLong_Check(item) || PyUnicode_Check(item) || item == Py_None ||
                           PyTuple_Check(item) || PyFloat_Check(item) || PyComplex_Check(item);
    const operands::ReadResult result =
        is_number ? operands::ReadResult::kUnknownType
                  : operands::ReadOperand(item, none, &general_, operand.get());
    if (result == operands::ReadResult::kFailed) {
      NameError(What(index) + "[" + std::to_string(i) + "]");
      return false;
    }
    const bool is_array = result == operands::ReadResult::kDone && operand->is_array;
    if (i == 0 && !is_array) return false;
    if (!is_array) {
      PyErr_Format(PyExc_TypeError,
                   "%s[%zd] must be an array, as its first item is (got %S): a list or tuple is of "
                   "arrays, or of none",
                   What(index).c_str(), i, Spelled(item).get());
      return false;
    }
    if (i == 0) kind->Add(is_list ? Step::kList : Step::kTuple).items = static_cast<int32_t>(size);
    AddArray(std::move(operand), true, kind);
  }
  return size > 0;
}

// Whether programs can be told apart by a value.
bool FunctionCall::IsHashable(size_t index, PyObject* object) const {
  if (!PyComplex_Check(object) && PyObject_Hash(object) != -1) return true;
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError,
               "%s must be an array, a number, None, a list or tuple of arrays, or a value that "
               "can be hashed, such as a str (got %S, a %R)",
               What(index).c_str(), Spelled(object).get(),
               reinterpret_cast<PyObject*>(Py_TYPE(object)));
  return false;
}

bool FunctionCall::ReadArgument(size_t index, Kind* kind) {
  PyObject* object = args_[index];
  numbers_[index] = object;
  if (object == Py_None) {
    kind->Add(Step::kNone);
    return true;
  }
  if (PyTuple_Check(object) || PyList_Check(object)) {
    if (ReadSequence(index, object, kind)) return true;
    if (PyErr_Occurred() != nullptr || !IsHashable(index, object)) return false;
    kind->Add(Step::kStatic).value = Ref::Borrow(object);
    return true;
  }
  auto operand = std::make_unique<operands::Operand>();
  // Names are spelled out only where something is wrong.
  static const std::string none;
  const bool is_value = PyComplex_Check(object) || PyUnicode_Check(object) || PyBool_Check(object);
  const operands::ReadResult result =
      is_value ? operands::ReadResult::kUnknownType
               : operands::ReadOperand(object, none, &general_, operand.get());
  if (result == operands::ReadResult::kFailed) {
    NameError(What(index));
    return false;
  }
  if (result == operands::ReadResult::kDone && operand->is_array) {
    AddArray(std::move(operand), false, kind);
    return true;
  }
  const TypeEntry* entry = operand->entry;
  if (entry != nullptr && entry->kind == ArgumentKind::kScalar) {
    return ReadScalar(index, *operand, kind);
  }
  if (entry != nullptr && entry->kind == ArgumentKind::kInt && !entry->is_enum) {
    int64_t value = 0;
    kind->Add(Step::kInt);
    if (ReadInt(object, &value) == IntRange::kSigned) return true;
    PyErr_Format(PyExc_OverflowError, "%s must fit 64 bits (got %S)", What(index).c_str(),
                 Spelled(object).get());
    return false;
  }
  if (entry != nullptr && entry->kind == ArgumentKind::kFloat) {
    kind->Add(Step::kFloat);
    return true;
  }
  if (!IsHashable(index, object)) return false;
  kind->Add(Step::kStatic).value = Ref::Borrow(object);
  return true;
}

bool FunctionCall::ReadGenerally(Kind* kind) {
  operands_.clear();
  numbers_.assign(state_.parameters.size(), nullptr);
  general_ = operands::Place();
  general_.types = operands::kAllTypes;
  general_.checks_gradient = false;
  general_.driver = state_.driver.load(std::memory_order_acquire);
  for (size_t i = 0; i < state_.parameters.size(); ++i) {
    if (!ReadArgument(i, kind)) return false;
  }
  return true;
}

// What the program needs of arguments that were read generally.
bool FunctionCall::GatherOperands(Kind& kind) {
  const Program& program = *program_;
  place_ = CallPlace();
  if (general_.first == nullptr) {
    if (!FinishPlace()) return false;
    state_.driver.store(place_.driver, std::memory_order_release);
  } else {
    place_.driver = general_.driver;
    place_.device = general_.device;
    place_.first = general_.first->object;
    place_.entry = general_.first->entry;
    place_.stream = general_.stream;
    if (program.driver != nullptr && program.driver != place_.driver) {
      // Drivers may be of the same kinds of memory: the one in use counts.
      const Ref current = CallUp(Upcall::kCurrentDriver);
      place_.driver = current ? DriverOf(current.get()) : nullptr;
      if (place_.driver == nullptr) return false;
      if (program.driver != place_.driver ||
          !place_.driver->IsDeviceMemory(place_.device.device_type)) {
        PyErr_Format(PyExc_RuntimeError,
                     "%U: its kernels are loaded with the driver %s, and the arrays are in memory "
                     "of the driver %s: choose that with culaunch.set_driver, and load them there",
                     state_.name.get(), program.driver->name().c_str(),
                     place_.driver->name().c_str());
        return false;
      }
    }
    state_.driver.store(place_.driver, std::memory_order_release);
    state_.device_type.store(place_.device.device_type, std::memory_order_relaxed);
    if (program.device_input >= 0) {
      inputs_[static_cast<size_t>(program.device_input)] = place_.device.device_id;
    }
  }
  for (size_t i = 0; i < operands_.size(); ++i) {
    const operands::Operand& operand = *operands_[i];
    ArrayValue& value = arrays_[i];
    value.data = operand.data;
    value.object = operand.object;
    value.number = operand.number;
    value.effect = nullptr;
    value.base = static_cast<int32_t>(i);
    if (IsWatched(program, i)) {
      const DLTensor tensor = {operand.data,
                               operand.device,
                               operand.ndim,
                               operands::TypeOf(operand.number),
                               const_cast<int64_t*>(operand.shape),
                               const_cast<int64_t*>(operand.strides),
                               0};
      const Extent extent = ExtentOf(tensor);
      value.begin = static_cast<const char*>(extent.begin);
      value.bytes = extent.bytes;
    }
    GatherTensor(program, i, operand.shape, operand.strides, operand.ndim);
  }
  size_t parameter = 0;
  size_t array = 0;
  int32_t items_left = 0;
  for (size_t i = 0; i < kind.steps.size(); ++i) {
    Step& step = kind.steps[i];
    if (step.code == Step::kArray) {
      const operands::Operand& operand = *operands_[array++];
      const bool is_kept = operand.entry != &operand.scratch;
      if (is_kept && operand.entry->kind == ArgumentKind::kExchange) {
        step.entry.store(operand.entry, std::memory_order_release);
      }
      // The items of a list or tuple are one parameter's.
      if (items_left > 0) {
        if (--items_left == 0) ++parameter;
        continue;
      }
    } else if (step.code >= Step::kTuple) {
      items_left = step.items;
      continue;
    } else {
      const int32_t input = program.number_inputs[parameter];
      PyObject* object = numbers_[parameter];
      if (input >= 0 && step.code == Step::kInt) {
        int64_t value = 0;
        ReadInt(object, &value);
        inputs_[static_cast<size_t>(input)] = value;
      } else if (input >= 0) {
        const double value = PyFloat_AsDouble(object);
        if (value == -1 && PyErr_Occurred() != nullptr) return false;
        inputs_[static_cast<size_t>(input)] = FloatWord(value);
      }
    }
    ++parameter;
  }
  return true;
}

FunctionCall::Found FunctionCall::Find() {
  Kind* last = state_.last.load(std::memory_order_acquire);
  if (!CULAUNCH_UNLIKELY(last == nullptr)) {
    const Reading reading = ReadAs(*last);
    if (!CULAUNCH_UNLIKELY(reading != Reading::kSame)) return Found::kFound;
    if (reading == Reading::kFailed) return Found::kFailed;
    // Each kind that is tried reads the arguments anew: after a few, what they are is found out
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

bool FunctionCall::Trace() {
  const Ref arguments = Arguments();
  if (!arguments) return false;
  const Ref done(PyObject_CallMethod(state_.self, methods::kTrace, "(O)", arguments.get()));
  return static_cast<bool>(done);
}

// What is computed of a tensor that requires grad has no derivative: where torch records, that is
// an error and not a gradient that is missing without a word.
bool FunctionCall::CheckGradients() const {
  if (!program_->returns_new_arrays || place_.entry == nullptr || !place_.entry->is_torch) {
    return true;
  }
  static PyObject* const name = PyUnicode_InternFromString("requires_grad");
  for (size_t i = 0; i < program_->argument_arrays; ++i) {
    if (!MayRequireGrad(place_.entry->api, arrays_[i].object)) continue;
    const Ref requires_grad(PyObject_GetAttr(arrays_[i].object, name));
    if (!requires_grad) return false;
    if (requires_grad.get() != Py_True) continue;
    const std::string what = TextOf(state_.name.get()) + ": an argument";
    if (!CallUp(Upcall::kCheckGradient, "(s)", what.c_str())) return false;
  }
  return true;
}

bool FunctionCall::CheckWatch() {
  Watch* watch = state_.watch.load(std::memory_order_acquire);
  if (CULAUNCH_UNLIKELY(watch != nullptr && !watch->Holds())) {
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
