#include "function/call.h"

#include <cstring>

#include "arguments/torch_tensor.h"
#include "driver/driver_object.h"
#include "driver/errors.h"
#include "function/execution.h"
#include "function/plan.h"
#include "python/numbers.h"
#include "python/upcalls.h"

namespace function {

namespace {

constexpr int kMostNesting = 16;
constexpr size_t kMostLeaves = 4096;
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

bool FunctionCall::FlattenStep(const Kind& kind, size_t* at, PyObject* object) {
  const Step& step = kind.steps[(*at)++];
  if (step.code != Step::kTuple && step.code != Step::kList) {
    flat_[flat_count_++] = object;
    return true;
  }
  PyObject* items = object;
  if (step.code == Step::kTuple) {
    if (!PyTuple_Check(object)) return false;
  } else {
    if (!PyList_Check(object)) return false;
    // Another thread may change the list: the items that are read are kept.
    owners_.emplace_back(PyList_AsTuple(object));
    items = owners_.back().get();
    if (items == nullptr) return PyErr_Clear(), false;
  }
  if (PyTuple_Size(items) != step.items) return false;
  for (int32_t i = 0; i < step.items; ++i) {
    if (!FlattenStep(kind, at, PyTuple_GetItem(items, i))) return false;
  }
  return true;
}

bool FunctionCall::Flatten(const Kind& kind) {
  flat_count_ = 0;
  if (kind.leaves > flat_capacity_) {
    flat_.Grow(kind.leaves, 0);
    flat_capacity_ = kind.leaves;
  }
  size_t at = 0;
  for (size_t i = 0; i < state_.parameters.size(); ++i) {
    if (!FlattenStep(kind, &at, args_[i])) return false;
  }
  leaves_ = flat_.data();
  return true;
}

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

FunctionCall::Reading FunctionCall::ReadAs(Kind& kind) {
  if (!TakeProgram(kind)) return Reading::kOther;
  const Program& program = *program_;
  place_ = CallPlace();
  place_.driver = state_.driver.load(std::memory_order_acquire);
  if (place_.driver == nullptr) return Reading::kOther;
  leaves_ = args_;
  if (CULAUNCH_UNLIKELY(kind.has_sequences) && !Flatten(kind)) return Reading::kOther;
  size_t leaf = 0;
  size_t array = 0;
  for (const Step& step : kind.steps) {
    if (CULAUNCH_UNLIKELY(step.code >= Step::kTuple)) continue;
    PyObject* object = leaves_[leaf];
    // No switch: its indirect jump is rarely predicted after a launch.
    if (step.code == Step::kArray) {
      const Reading reading = ReadTensorAs(step, program, array++, object);
      if (CULAUNCH_UNLIKELY(reading != Reading::kSame)) return reading;
    } else if (step.code == Step::kInt) {
      if (CULAUNCH_UNLIKELY(!PyLong_CheckExact(object))) return Reading::kOther;
      int64_t value;
      if (CULAUNCH_UNLIKELY(ReadInt(object, &value) != IntRange::kSigned)) return Reading::kOther;
      const int32_t input = program.leaf_inputs[leaf];
      if (input >= 0) inputs_[static_cast<size_t>(input)] = value;
    } else if (step.code == Step::kFloat) {
      if (CULAUNCH_UNLIKELY(!PyFloat_CheckExact(object))) return Reading::kOther;
      const int32_t input = program.leaf_inputs[leaf];
      if (input >= 0) inputs_[static_cast<size_t>(input)] = FloatWord(ReadFloat(object));
    } else if (step.code == Step::kNone) {
      if (CULAUNCH_UNLIKELY(object != Py_None)) return Reading::kOther;
    } else {
      const int is_same = IsSameStatic(step.value.get(), object);
      if (CULAUNCH_UNLIKELY(is_same != 1)) {
        return is_same < 0 ? Reading::kFailed : Reading::kOther;
      }
    }
    ++leaf;
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
bool FunctionCall::ReadScalar(PyObject* object, const operands::Operand& operand,
                              const std::string& what, Kind* kind) {
  const TypeClass scalar = operand.entry->scalar_class;
  const bool is_numpy = operands::ModuleRoot(Py_TYPE(object)) != "ctypes" &&
                        operands::ModuleRoot(Py_TYPE(object)) != "_ctypes";
  if (is_numpy && (scalar == TypeClass::kSigned || scalar == TypeClass::kUnsigned)) {
    owners_.emplace_back(PyNumber_Index(object));
    if (!owners_.back()) return false;
    kind->Add(Step::kInt);
  } else if (is_numpy && scalar == TypeClass::kFloat) {
    owners_.emplace_back(PyNumber_Float(object));
    if (!owners_.back()) return false;
    kind->Add(Step::kFloat);
  } else if (is_numpy && scalar == TypeClass::kBool) {
    const int truth = PyObject_IsTrue(object);
    if (truth < 0) return false;
    owners_.emplace_back(PyBool_FromLong(truth));
    kind->Add(Step::kStatic).value = Ref::Borrow(owners_.back().get());
  } else {
    PyErr_Format(PyExc_TypeError, "%s is a %R: pass a Python number, or a number of NumPy",
                 what.c_str(), reinterpret_cast<PyObject*>(Py_TYPE(object)));
    return false;
  }
  flat_[flat_count_++] = owners_.back().get();
  return true;
}

bool FunctionCall::ReadLeaf(PyObject* object, const std::string& what, int depth, Kind* kind) {
  if (depth > kMostNesting || kind->leaves >= kMostLeaves) {
    PyErr_Format(PyExc_ValueError, "%s is nested too deep, or has too many items", what.c_str());
    return false;
  }
  if (PyTuple_Check(object) || PyList_Check(object)) {
    const bool is_list = PyList_Check(object) != 0;
    owners_.push_back(is_list ? Ref(PyList_AsTuple(object)) : Ref::Borrow(object));
    PyObject* items = owners_.back().get();
    if (items == nullptr) return false;
    const Py_ssize_t size = PyTuple_Size(items);
    kind->Add(is_list ? Step::kList : Step::kTuple).items = static_cast<int32_t>(size);
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (!ReadLeaf(PyTuple_GetItem(items, i), what + "[" + std::to_string(i) + "]", depth + 1,
                    kind)) {
        return false;
      }
    }
    return true;
  }
  if (flat_count_ + 1 > flat_capacity_) {
    flat_.Grow(2 * flat_capacity_, flat_count_);
    flat_capacity_ *= 2;
  }
  if (PyBool_Check(object) || PyUnicode_Check(object)) {
    kind->Add(Step::kStatic).value = Ref::Borrow(object);
    flat_[flat_count_++] = object;
    return true;
  }
  if (object == Py_None) {
    kind->Add(Step::kNone);
    flat_[flat_count_++] = object;
    return true;
  }
  auto operand = std::make_unique<operands::Operand>();
  // Names are spelled out only where something is wrong.
  static const std::string none;
  const operands::ReadResult result =
      PyComplex_CheckExact(object) ? operands::ReadResult::kUnknownType
                                   : operands::ReadOperand(object, none, &general_, operand.get());
  if (result == operands::ReadResult::kFailed) {
    NameError(what);
    return false;
  }
  const TypeEntry* entry = operand->entry;
  if (result == operands::ReadResult::kDone && operand->is_array) {
    Step& step = kind->Add(Step::kArray);
    step.number = operand->number;
    step.rank = operand->ndim;
    step.is_read_only = operand->is_read_only;
    step.type = PackType(operands::TypeOf(operand->number));
    operands_.push_back(std::move(operand));
    flat_[flat_count_++] = object;
    return true;
  }
  if (entry != nullptr && entry->kind == ArgumentKind::kScalar) {
    return ReadScalar(object, *operand, what, kind);
  }
  if (entry != nullptr && entry->kind == ArgumentKind::kInt && !entry->is_enum) {
    int64_t value = 0;
    if (ReadInt(object, &value) != IntRange::kSigned) {
      PyErr_Format(PyExc_OverflowError, "%s must fit 64 bits (got %S)", what.c_str(),
                   Spelled(object).get());
      return false;
    }
    kind->Add(Step::kInt);
    flat_[flat_count_++] = object;
    return true;
  }
  if (entry != nullptr && entry->kind == ArgumentKind::kFloat) {
    kind->Add(Step::kFloat);
    flat_[flat_count_++] = object;
    return true;
  }
  // Anything else is a value that programs are told apart by.
  if (PyComplex_Check(object) || PyObject_Hash(object) == -1) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "%s must be an array, a number, None, or a value that can be hashed, such as a "
                 "str; or a list or tuple of these (got %S, a %R)",
                 what.c_str(), Spelled(object).get(), reinterpret_cast<PyObject*>(Py_TYPE(object)));
    return false;
  }
  kind->Add(Step::kStatic).value = Ref::Borrow(object);
  flat_[flat_count_++] = object;
  return true;
}

bool FunctionCall::ReadGenerally(Kind* kind) {
  operands_.clear();
  flat_count_ = 0;
  general_ = operands::Place();
  general_.types = operands::kAllTypes;
  general_.checks_gradient = false;
  general_.driver = state_.driver.load(std::memory_order_acquire);
  for (size_t i = 0; i < state_.parameters.size(); ++i) {
    if (!ReadLeaf(args_[i], What(i), 0, kind)) return false;
  }
  leaves_ = flat_.data();
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
  size_t leaf = 0;
  size_t array = 0;
  for (Step& step : kind.steps) {
    if (step.code >= Step::kTuple) continue;
    PyObject* object = leaves_[leaf];
    const int32_t input = program.leaf_inputs[leaf++];
    if (step.code == Step::kArray) {
      const operands::Operand& operand = *operands_[array++];
      const bool is_kept = operand.entry != &operand.scratch;
      if (is_kept && operand.entry->kind == ArgumentKind::kExchange) {
        step.entry.store(operand.entry, std::memory_order_release);
      }
    } else if (input >= 0 && step.code == Step::kInt) {
      int64_t value = 0;
      ReadInt(object, &value);
      inputs_[static_cast<size_t>(input)] = value;
    } else if (input >= 0) {
      const double value = PyFloat_AsDouble(object);
      if (value == -1 && PyErr_Occurred() != nullptr) return false;
      inputs_[static_cast<size_t>(input)] = FloatWord(value);
    }
  }
  return true;
}

FunctionCall::Found FunctionCall::Find() {
  Kind* last = state_.last.load(std::memory_order_acquire);
  if (!CULAUNCH_UNLIKELY(last == nullptr)) {
    const Reading reading = ReadAs(*last);
    if (!CULAUNCH_UNLIKELY(reading != Reading::kSame)) return Found::kFound;
    if (reading == Reading::kFailed) return Found::kFailed;
    for (Kind* it = state_.kinds.load(std::memory_order_acquire); it != nullptr; it = it->next) {
      if (it == last) continue;
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
    return Trace(&kind) ? Found::kUnknown : Found::kFailed;
  }
  if (!GatherOperands(*known)) return Found::kFailed;
  state_.last.store(known, std::memory_order_release);
  return Found::kFound;
}

// ---- the call

bool FunctionCall::Trace(const Kind* kind) {
  Kind own;
  if (kind == nullptr) {
    if (!ReadGenerally(&own)) return false;
    kind = &own;
  }
  const Ref description = kind->Describe();
  const Ref arguments(PyTuple_New(static_cast<Py_ssize_t>(state_.parameters.size())));
  if (!description || !arguments) return false;
  for (size_t i = 0; i < state_.parameters.size(); ++i) {
    PyTuple_SetItem(arguments.get(), static_cast<Py_ssize_t>(i), Ref::Borrow(args_[i]).release());
  }
  const Ref done(
      PyObject_CallMethod(state_.self, methods::kTrace, "OO", arguments.get(), description.get()));
  return static_cast<bool>(done);
}

// What is computed of a tensor that requires grad has no derivative: where torch records, that is
// an error and not a gradient that is missing without a word.
bool FunctionCall::CheckGradients() const {
  static PyObject* const name = PyUnicode_InternFromString("requires_grad");
  for (size_t i = 0; i < program_->argument_arrays; ++i) {
    const Ref requires_grad(PyObject_GetAttr(arrays_[i].object, name));
    if (!requires_grad) return false;
    if (requires_grad.get() != Py_True) continue;
    const std::string what = TextOf(state_.name.get()) + ": an argument";
    if (!CallUp(Upcall::kCheckGradient, "(s)", what.c_str())) return false;
  }
  return true;
}

PyObject* FunctionCall::Run() {
  constexpr int kMostTraces = 8;
  for (int traces = 0; traces <= kMostTraces; ++traces) {
    Guards* guards = state_.guards.load(std::memory_order_acquire);
    if (guards != nullptr && !guards->Hold()) {
      if (PyErr_Occurred() != nullptr) return nullptr;
      state_.guards.store(nullptr, std::memory_order_release);
      state_.Forget();
    }
    const Found found = Find();
    if (CULAUNCH_UNLIKELY(found != Found::kFound)) {
      if (found == Found::kFailed) return nullptr;
      continue;
    }
    if (program_->returns_new_arrays && place_.entry != nullptr && place_.entry->is_torch &&
        !CheckGradients()) {
      return nullptr;
    }
    Execution execution(*this);
    const PlanEnd end = execution.Plan();
    if (CULAUNCH_UNLIKELY(end == PlanEnd::kFailed)) return nullptr;
    if (!CULAUNCH_UNLIKELY(end == PlanEnd::kUnknown)) return execution.Run();
    if (!Trace(nullptr)) return nullptr;
  }
  const Ref type = ErrorClass("InternalError");
  if (type) {
    PyErr_Format(type.get(), "%U: tracing it gives no program that serves this call",
                 state_.name.get());
  }
  return nullptr;
}

Ref FunctionCall::DescribeKind() {
  Kind kind;
  return ReadGenerally(&kind) ? kind.Describe() : Ref();
}

}  // namespace function
