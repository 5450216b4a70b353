// One call of a fused function, and the state that the function keeps between calls.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "arguments/operands.h"
#include "elementwise/layout.h"
#include "launch/kernel_object.h"
#include "python/python.h"
#include "python/small_buffer.h"
#include "python/text_of.h"

namespace elementwise {

// A kernel for one layout.
struct CompiledLayout {
  LayoutKey key;
  KernelObject* kernel;  // owned
  uint32_t unroll;
  CompiledLayout* next;
};

struct ScalarPlan {
  int argument;
  uint8_t number;
};

// The facts about one combination of argument types on one device.
struct Specialization {
  std::vector<uint8_t> numbers;  // of the arguments
  culaunch::Driver* driver;
  int ordinal;
  std::vector<uint8_t> outputs;
  // Of each argument: 1 mapped, 2 raw, 3 a scalar, 4 broadcast but not read, 0 not used.
  std::vector<uint8_t> roles;
  std::vector<ScalarPlan> scalars;
  bool uses_index;
  int64_t threads;  // enough to keep the device busy
  PyObject* token;  // owned: from which Python makes kernels
  std::atomic<CompiledLayout*> layouts{nullptr};
  Specialization* next;
};

// The lists only grow, so a call walks them without a lock.
struct ElementwiseObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* name;        // owned, a str
  PyObject* parameters;  // owned, a tuple of str
  std::atomic<Specialization*> specializations;
  std::atomic<culaunch::Driver*> driver;  // of the last call
  // For a function that reduces: the owned function with its host side, and the type of traced
  // values, which elementwise calls refuse.
  std::atomic<PyObject*> delegate;
  PyTypeObject* value_type;
  // The entry of the last array's type: most calls pass the same one again.
  std::atomic<const TypeEntry*> last;
};

// The state of one call.
class ElementwiseCall {
 public:
  ElementwiseCall(ElementwiseObject* self, PyObject* const* args, size_t count)
      : self_(self), args_(args), count_(static_cast<int>(count)), operands_(count) {
    place_.driver = self->driver.load(std::memory_order_acquire);
  }

  // A null reference with a Python error set, unless `fall_back` is set.
  PyObject* Run(PyObject* out);

  // The kernel of a call: (element code, ordinal, kind, vector, rank, wide, classes).
  PyObject* Describe(PyObject* out);

  // For a function that reduces: check that `out` shares memory with other arrays only in ways that
  // give correct results. False with a Python error set.
  bool CheckOutputsOfReduction(PyObject* out);

  // The type of an argument is unknown, so Python must look at the arguments.
  bool fall_back = false;

 private:
  std::string What(int index) const {
    return TextOf(self_->name) + ": argument " + TextOf(PyTuple_GetItem(self_->parameters, index));
  }
  std::string WhatOut(int index) const {
    return TextOf(self_->name) + ": out" +
           (special_->outputs.size() > 1 ? "[" + std::to_string(index) + "]" : "");
  }

  // Prefix the message of the current error with its subject.
  void NameArgument(int index) const { operands::NameMistake(What(index)); }

  bool ReadArguments();
  bool Specialize();
  bool FindShape(PyObject* out);
  bool ReadOutputs(PyObject* out);
  bool CheckOverlap();
  bool WantsOrder(int* order) const;
  bool AllocateOutputs();
  void PretendOutputs();
  bool Prepare(PyObject* out);
  bool AddViews();
  CompiledLayout* FindKernel(const LayoutKey& key);
  void TellDriver() const;
  bool Launch(const CompiledLayout& compiled, const LayoutKey& key);
  PyObject* Result(PyObject* out);

  ElementwiseObject* self_;
  PyObject* const* args_;
  int count_;
  Place place_;
  Specialization* special_ = nullptr;
  SmallBuffer<Operand, 4> operands_;
  SmallBuffer<Operand, 1> outputs_;
  std::vector<Ref> made_;
  Problem problem_;
};

// Elementwise._set_busy_threads(threads), for tests.
PyObject* SetBusyThreads(PyObject* self, PyObject* args);

}  // namespace elementwise
