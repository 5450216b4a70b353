// Reading arguments of any kind: slower than those of a known kind, with errors that name the
// argument.
#include "driver/driver_in_use.h"
#include "driver/errors.h"
#include "function/calls/call.h"
#include "function/plans/gather.h"
#include "python/numbers.h"

namespace function {

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
    PyErr_Format(PyExc_TypeError, "%s must be a Python number or a NumPy number (got a %R)",
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

// A list or tuple of arrays. False if it is not one, perhaps with a Python error set. A list may be
// empty; an empty tuple is a value.
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
      operands::NameMistake(What(index) + "[" + std::to_string(i) + "]");
      return false;
    }
    const bool is_array = result == operands::ReadResult::kDone && operand->is_array;
    if (i == 0 && !is_array) return false;
    if (!is_array) {
      PyErr_Format(
          PyExc_TypeError,
          "%s[%zd] must be an array, because the first item is one (got %S): a list or tuple is of "
          "arrays, or of none",
          What(index).c_str(), i, Spelled(item).get());
      return false;
    }
    if (i == 0) kind->Add(is_list ? Step::kList : Step::kTuple).items = static_cast<int32_t>(size);
    AddArray(std::move(operand), true, kind);
  }
  if (size == 0 && is_list && items != nullptr) kind->Add(Step::kList);
  return size > 0 || (is_list && items != nullptr);
}

// Whether an argument is a JAX object, which may be a tracer.
bool FunctionCall::IsOfJax() const {
  const auto is_of_jax = [](PyObject* object) {
    const std::string root = operands::ModuleRoot(Py_TYPE(object));
    return root == "jax" || root == "jaxlib";
  };
  for (size_t i = 0; i < state_.parameters.size(); ++i) {
    if (is_of_jax(args_[i])) return true;
    if (!PyTuple_Check(args_[i]) && !PyList_Check(args_[i])) continue;
    const Ref items(PySequence_Tuple(args_[i]));
    for (Py_ssize_t k = 0; items && k < PyTuple_Size(items.get()); ++k) {
      if (is_of_jax(PyTuple_GetItem(items.get(), k))) return true;
    }
  }
  return false;
}

// Whether a value can select a program.
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
  // Names are spelled out only for errors.
  static const std::string none;
  const bool is_value = PyComplex_Check(object) || PyUnicode_Check(object) || PyBool_Check(object);
  const operands::ReadResult result =
      is_value ? operands::ReadResult::kUnknownType
               : operands::ReadOperand(object, none, &general_, operand.get());
  if (result == operands::ReadResult::kFailed) {
    operands::NameMistake(What(index));
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

// The values that the program needs from arguments that were read generally.
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
      // Two drivers may use the same kinds of memory. The one in use then decides.
      place_.driver = CurrentDriver();
      if (place_.driver == nullptr) return false;
      if (program.driver != place_.driver ||
          !place_.driver->IsDeviceMemory(place_.device.device_type)) {
        PyErr_Format(
            PyExc_RuntimeError,
            "%U: its kernels are loaded with the driver %s, but the arrays are in memory of the "
            "driver %s: choose that driver with culaunch.driver.set_driver, and load them there",
            state_.name.get(), program.driver->name().c_str(), place_.driver->name().c_str());
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
      const Extent extent = operands::ExtentOf(operand);
      value.begin = static_cast<const char*>(extent.begin);
      value.bytes = extent.bytes;
    }
    GatherArray(program, i, operand.data, operand.shape, operand.strides, operand.ndim,
                inputs_.data());
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
      // All items of a list or tuple belong to one parameter.
      if (items_left > 0) {
        if (--items_left == 0) ++parameter;
        continue;
      }
    } else if (step.code >= Step::kTuple) {
      items_left = step.items;
      if (items_left == 0) ++parameter;
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
        inputs_[static_cast<size_t>(input)] = FromFloat(value);
      }
    }
    ++parameter;
  }
  return true;
}

}  // namespace function
