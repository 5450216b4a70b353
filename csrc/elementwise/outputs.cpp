// The outputs of a call: given, allocated, or simulated for a description.
#include <algorithm>

#include "arguments/allocate.h"
#include "arguments/device_array/device_array.h"
#include "driver/errors.h"
#include "elementwise/call.h"
#include "python/upcalls.h"

namespace elementwise {

namespace {

// Whether an array's type is immutable, as jax.Array is.
bool IsImmutable(const Operand& operand) {
  static std::atomic<PyTypeObject*> changing{nullptr};  // a type known to be mutable
  if (changing.load(std::memory_order_relaxed) == Py_TYPE(operand.object)) return false;
  const bool is_jax = ModuleRoot(Py_TYPE(operand.object)).rfind("jax", 0) == 0;
  if (!is_jax) changing.store(Py_TYPE(operand.object), std::memory_order_relaxed);
  return is_jax;
}

}  // namespace

bool ElementwiseCall::ReadOutputs(PyObject* out) {
  const size_t expected = special_->outputs.size();
  const bool is_tuple = PyTuple_Check(out) != 0;
  const size_t given = is_tuple ? static_cast<size_t>(PyTuple_Size(out)) : 1;
  if (given != expected || (is_tuple && expected == 1)) {
    PyErr_Format(
        PyExc_TypeError, "%U: out must be %s (got %R)", self_->name,
        expected == 1 ? "an array" : ("a tuple of " + std::to_string(expected) + " arrays").c_str(),
        reinterpret_cast<PyObject*>(Py_TYPE(out)));
    return false;
  }
  for (size_t i = 0; i < expected; ++i) {
    PyObject* object = is_tuple ? PyTuple_GetItem(out, static_cast<Py_ssize_t>(i)) : out;
    Operand& operand = outputs_[i];
    const int index = static_cast<int>(i);
    operand.entry = place_.first->entry != &place_.first->scratch ? place_.first->entry : nullptr;
    static const std::string none;
    const ReadResult result = ReadOperand(object, none, &place_, &operand);
    if (result == ReadResult::kFailed) {
      operands::NameMistake(WhatOut(index));
      return false;
    }
    if (result == ReadResult::kUnknownType || !operand.is_array) {
      const Ref spelled = Spelled(object);
      if (!spelled) return false;
      PyErr_Format(PyExc_TypeError, "%s must be an array (got %U)", WhatOut(index).c_str(),
                   spelled.get());
      return false;
    }
    if (operand.number != special_->outputs[i]) {
      PyErr_Format(PyExc_TypeError, "%s must be %s, the type of the result (got %s)",
                   WhatOut(index).c_str(), NameOf(special_->outputs[i]), NameOf(operand.number));
      return false;
    }
    if (operand.is_read_only || IsImmutable(operand)) {
      PyErr_Format(PyExc_ValueError, "%s is read-only", WhatOut(index).c_str());
      return false;
    }
  }
  return true;
}

bool ElementwiseCall::CheckOverlap() {
  const int outputs = static_cast<int>(special_->outputs.size());
  for (int i = 0; i < outputs; ++i) {
    const View& view = problem_.views[i];
    if (OverlapsItself(problem_, view)) {
      PyErr_Format(PyExc_ValueError, "%s has elements that share memory", WhatOut(i).c_str());
      return false;
    }
    for (int j = i + 1; j < problem_.count; ++j) {
      bool exact = false;
      if (!Overlap(problem_, view, problem_.views[j], &exact)) continue;
      if (exact && j >= outputs) continue;  // in place
      PyErr_Format(
          PyExc_ValueError,
          "%s overlaps %s: out must be one of the arguments itself, or have memory of its own",
          WhatOut(i).c_str(), j < outputs ? "another out" : "an argument");
      return false;
    }
    for (int j = 0; j < count_; ++j) {
      if (special_->roles[static_cast<size_t>(j)] != 2) continue;
      bool exact = false;
      Problem own = {};
      Broadcast(&own, operands_[j]);
      own.AddView(operands_[j]);
      const char* begin = own.views[0].data;
      const int64_t bytes = own.Size() * own.views[0].item;
      Problem whole = {};
      Broadcast(&whole, outputs_[i]);
      whole.AddView(outputs_[i]);
      View flat = whole.views[0];
      flat.data = const_cast<char*>(begin);
      std::fill(flat.strides, flat.strides + whole.ndim, 0);
      flat.item = static_cast<int>(std::min<int64_t>(bytes, INT32_MAX));
      if (bytes == 0 || !Overlap(whole, whole.views[0], flat, &exact)) continue;
      PyErr_Format(PyExc_ValueError, "%s overlaps the raw argument %s", WhatOut(i).c_str(),
                   TextOf(PyTuple_GetItem(self_->parameters, j)).c_str());
      return false;
    }
  }
  return true;
}

// Whether the outputs' dimensions have another order than C order. It is the order of the first
// argument with the outputs' shape.
bool ElementwiseCall::WantsOrder(int* order) const {
  for (int i = 0; i < count_ && !special_->uses_index; ++i) {
    const Operand& operand = operands_[i];
    if (special_->roles[static_cast<size_t>(i)] == 1 && operand.ndim == problem_.ndim &&
        std::equal(operand.shape, operand.shape + operand.ndim, problem_.shape)) {
      return MemoryOrder(operand, order);
    }
  }
  return false;
}

bool ElementwiseCall::AllocateOutputs() {
  int order[kMaxDims];
  const int* wanted = WantsOrder(order) ? order : nullptr;
  for (size_t i = 0; i < special_->outputs.size(); ++i) {
    made_.push_back(Allocate(place_, special_->outputs[i], problem_.ndim, problem_.shape, wanted,
                             &outputs_[i]));
    if (!made_.back()) return false;
  }
  return true;
}

PyObject* ElementwiseCall::Result(PyObject* out) {
  if (out != nullptr) return Ref::Borrow(out).release();
  // JAX has its own stream, so it gets its array only after the array has been computed.
  for (size_t i = 0; i < made_.size(); ++i) {
    if (!IsDeviceArray(made_[i].get()) || IsDeviceArray(place_.first->object)) break;
    made_[i] = CallUp(Upcall::kFinishAllocation, "OOK", place_.first->object, made_[i].get(),
                      reinterpret_cast<unsigned long long>(place_.stream));
    if (!made_[i]) return nullptr;
  }
  if (made_.size() == 1) return made_[0].release();
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(made_.size())));
  for (size_t i = 0; tuple && i < made_.size(); ++i) {
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), made_[i].release());
  }
  return tuple.release();
}

// Outputs as they would be allocated, for a description of the call.
void ElementwiseCall::PretendOutputs() {
  int order[kMaxDims];
  const bool is_ordered = WantsOrder(order);
  for (size_t i = 0; i < special_->outputs.size(); ++i) {
    Operand& operand = outputs_[i];
    operand.number = special_->outputs[i];
    operand.ndim = problem_.ndim;
    operand.shape = problem_.shape;
    operand.strides = operand.room;
    int64_t dense = 1;
    for (int k = problem_.ndim; k-- > 0;) {
      const int d = is_ordered ? order[k] : k;
      operand.room[d] = dense;
      dense *= problem_.shape[d];
    }
  }
}

}  // namespace elementwise
