#include "elementwise/call.h"

#include <algorithm>
#include <cstring>

#include "driver/errors.h"
#include "launch/kernel_type.h"
#include "python/upcalls.h"

namespace elementwise {

namespace {

// Tests select the kernels of large arrays for small ones; -1: the device decides.
std::atomic<int64_t> g_threads{-1};

int64_t Threads(const Specialization& special) {
  const int64_t set = g_threads.load(std::memory_order_relaxed);
  return set >= 0 ? set : special.threads;
}

int Flags(const LayoutKey& key) { return (key.wide ? kWide : 0) | (key.small ? kSmall : 0); }

// Formats with a length (y#) differ between Python 3.13's headers and Python 3.12, and one wheel
// serves both.
Ref Bytes(const void* data, size_t size) {
  return Ref(
      PyBytes_FromStringAndSize(static_cast<const char*>(data), static_cast<Py_ssize_t>(size)));
}

}  // namespace

PyObject* SetBusyThreads(PyObject*, PyObject* args) {
  long long threads = 0;
  if (!PyArg_ParseTuple(args, "L:_set_busy_threads", &threads)) return nullptr;
  g_threads.store(threads, std::memory_order_relaxed);
  Py_RETURN_NONE;
}

bool ElementwiseCall::ReadArguments() {
  const TypeEntry* last = self_->last.load(std::memory_order_acquire);
  for (int i = 0; i < count_; ++i) {
    operands_[i].entry = last;
    // Names are spelled out only for errors.
    static const std::string none;
    const ReadResult result = ReadOperand(args_[i], none, &place_, &operands_[i]);
    if (result == ReadResult::kUnknownType) {
      fall_back = true;
      return false;
    }
    if (result == ReadResult::kFailed) {
      NameArgument(i);
      return false;
    }
  }
  if (place_.first == nullptr) {
    PyErr_Format(PyExc_TypeError, "%U needs at least one array among its arguments", self_->name);
    return false;
  }
  self_->driver.store(place_.driver, std::memory_order_release);
  const Operand& first = *place_.first;
  if (first.entry != last && first.entry != &first.scratch) {
    self_->last.store(first.entry, std::memory_order_release);
  }
  return true;
}

// Ask Python for the kernels of these argument types, if they are new.
bool ElementwiseCall::Specialize() {
  uint8_t numbers[kMaxOperands];
  for (int i = 0; i < count_; ++i) numbers[i] = operands_[i].number;
  const auto count = static_cast<size_t>(count_);
  Specialization* head = self_->specializations.load(std::memory_order_acquire);
  for (Specialization* it = head; it != nullptr; it = it->next) {
    if (it->driver == place_.driver && it->ordinal == place_.device.device_id &&
        std::memcmp(it->numbers.data(), numbers, count) == 0) {
      special_ = it;
      return true;
    }
  }
  const Ref made(PyObject_CallMethod(reinterpret_cast<PyObject*>(self_), methods::kSpecialize, "O",
                                     Bytes(numbers, count).get()));
  if (!made) return false;
  if (made.get() == Py_None) {  // the function reduces
    fall_back = true;
    return false;
  }
  PyObject *output_bytes, *role_bytes, *scalar_bytes;
  int uses_index = 0;
  PyObject* token = nullptr;
  if (!PyArg_ParseTuple(made.get(), "SSSpO", &output_bytes, &role_bytes, &scalar_bytes, &uses_index,
                        &token)) {
    return false;
  }
  const char* outputs = PyBytes_AsString(output_bytes);
  const char* roles = PyBytes_AsString(role_bytes);
  const char* scalars = PyBytes_AsString(scalar_bytes);
  const Py_ssize_t output_count = PyBytes_Size(output_bytes);
  if (output_count + count_ > kMaxOperands) {
    PyErr_Format(PyExc_ValueError,
                 "%U has %zd inputs and outputs together, but at most %d are supported",
                 self_->name, output_count + count_, kMaxOperands);
    return false;
  }
  auto special = std::make_unique<Specialization>();
  special->numbers.assign(numbers, numbers + count);
  special->driver = place_.driver;
  special->ordinal = place_.device.device_id;
  special->outputs.assign(outputs, outputs + output_count);
  special->roles.assign(roles, roles + PyBytes_Size(role_bytes));
  for (Py_ssize_t i = 0; i + 1 < PyBytes_Size(scalar_bytes); i += 2) {
    special->scalars.push_back({scalars[i], static_cast<uint8_t>(scalars[i + 1])});
  }
  special->uses_index = uses_index != 0;
  constexpr int kBusyThreads = 512;  // of a multiprocessor
  special->threads =
      int64_t{kBusyThreads} *
      place_.driver->Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, place_.device.device_id);
  special->token = Ref::Borrow(token).release();
  special_ = special.release();
  special_->next = head;
  while (!self_->specializations.compare_exchange_weak(special_->next, special_)) {
  }
  return true;
}

// Broadcast the arguments. If no argument is mapped, `out` determines the shape.
bool ElementwiseCall::FindShape(PyObject* out) {
  problem_.ndim = 0;
  const Operand* before = nullptr;
  for (int i = 0; i < count_; ++i) {
    const uint8_t role = special_->roles[static_cast<size_t>(i)];
    if (role != 1 && role != 4) continue;
    if (!Broadcast(&problem_, operands_[i])) {
      Operand so_far;
      so_far.ndim = problem_.ndim;
      so_far.shape = problem_.shape;
      PyErr_Format(PyExc_ValueError,
                   "%s of shape %s does not broadcast with shape %s of the arguments before it",
                   What(i).c_str(), operands_[i].ShapeText().c_str(), so_far.ShapeText().c_str());
      return false;
    }
    before = &operands_[i];
  }
  if (before == nullptr && out == nullptr) {
    PyErr_Format(PyExc_ValueError,
                 "%U: no argument determines the output's shape: pass out=", self_->name);
    return false;
  }
  if (before == nullptr) Broadcast(&problem_, outputs_[0]);  // all arguments are raw
  return true;
}

CompiledLayout* ElementwiseCall::FindKernel(const LayoutKey& key) {
  CompiledLayout* head = special_->layouts.load(std::memory_order_acquire);
  for (CompiledLayout* it = head; it != nullptr; it = it->next) {
    if (std::memcmp(&it->key, &key, sizeof key) == 0) return it;
  }
  const Ref made(PyObject_CallMethod(
      reinterpret_cast<PyObject*>(self_), methods::kMakeKernel, "OiCiiiO", special_->token,
      special_->ordinal, static_cast<int>(key.kind), static_cast<int>(key.vector),
      static_cast<int>(key.rank), Flags(key), Bytes(key.classes, problem_.count).get()));
  PyObject* kernel = nullptr;
  unsigned unroll = 1;
  if (!made || !PyArg_ParseTuple(made.get(), "O!I", g_kernel_type, &kernel, &unroll)) {
    return nullptr;
  }
  auto* compiled = new CompiledLayout{
      key, reinterpret_cast<KernelObject*>(Ref::Borrow(kernel).release()), unroll, head};
  if (&compiled->kernel->state->driver() != place_.driver) {
    PyErr_Format(PyExc_RuntimeError,
                 "%U: the driver in use is no longer %s, whose memory the arrays are in: choose it "
                 "again with culaunch.driver.set_driver",
                 self_->name, place_.driver->name().c_str());
    Py_DECREF(kernel);
    delete compiled;
    return nullptr;
  }
  while (!special_->layouts.compare_exchange_weak(compiled->next, compiled)) {
  }
  return compiled;
}

// Read the arguments and the given outputs, and find the shape.
bool ElementwiseCall::Prepare(PyObject* out) {
  if (!ReadArguments() || !Specialize()) return false;
  if (special_->outputs.size() > 1) {
    outputs_.Grow(special_->outputs.size(), 0);
  }
  return (out == nullptr || ReadOutputs(out)) && FindShape(out);
}

// Give the problem every array's strides.
bool ElementwiseCall::AddViews() {
  const int outputs = static_cast<int>(special_->outputs.size());
  for (int i = 0; i < outputs; ++i) {
    const Operand& operand = outputs_[i];
    if (operand.ndim != problem_.ndim ||
        !std::equal(operand.shape, operand.shape + operand.ndim, problem_.shape)) {
      Operand wanted;
      wanted.ndim = problem_.ndim;
      wanted.shape = problem_.shape;
      PyErr_Format(PyExc_ValueError, "%s must have shape %s (got %s)", WhatOut(i).c_str(),
                   wanted.ShapeText().c_str(), operand.ShapeText().c_str());
      return false;
    }
    problem_.AddView(operand);
  }
  for (int i = 0; i < count_; ++i) {
    const uint8_t role = special_->roles[static_cast<size_t>(i)];
    if (role == 1) problem_.AddView(operands_[i]);
    if (role != 2) continue;
    int64_t dense = 1;
    for (int d = operands_[i].ndim; d-- > 0;) {
      if (operands_[i].shape[d] != 1 && operands_[i].strides[d] != dense) {
        PyErr_Format(PyExc_ValueError, "%s is raw and must be contiguous in C order",
                     What(i).c_str());
        return false;
      }
      dense *= operands_[i].shape[d];
    }
  }
  return true;
}

PyObject* ElementwiseCall::Run(PyObject* out) {
  if (!Prepare(out) || (out == nullptr && !AllocateOutputs()) || !AddViews()) return nullptr;
  if (problem_.Size() == 0) return Result(out);
  if (out != nullptr && !CheckOverlap()) return nullptr;
  const LayoutKey key = ChooseLayout(&problem_, special_->uses_index, Threads(*special_));
  const CompiledLayout* compiled = FindKernel(key);
  if (compiled == nullptr || !Launch(*compiled, key)) return nullptr;
  return Result(out);
}

PyObject* ElementwiseCall::Describe(PyObject* out) {
  if (!Prepare(out)) {
    if (fall_back) {
      PyErr_Format(PyExc_TypeError, "%U: every argument must be an array or a number", self_->name);
    }
    return nullptr;
  }
  if (out == nullptr) PretendOutputs();
  if (!AddViews()) return nullptr;
  LayoutKey key;
  const bool is_empty = problem_.Size() == 0;
  if (!is_empty) key = ChooseLayout(&problem_, special_->uses_index, Threads(*special_));
  const char kind[] = {static_cast<char>(key.kind), 0};
  return Py_BuildValue("OisiiiO", special_->token, special_->ordinal, kind,
                       static_cast<int>(key.vector), static_cast<int>(key.rank), Flags(key),
                       Bytes(key.classes, problem_.count).get());
}

}  // namespace elementwise
