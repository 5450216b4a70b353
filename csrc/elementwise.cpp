#include "elementwise.h"

#include <structmember.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "arguments.h"
#include "device_array.h"
#include "driver.h"
#include "elementwise_arrays.h"
#include "elementwise_layout.h"
#include "errors.h"
#include "kernel.h"

namespace {

using elementwise::Division;
using elementwise::LayoutKey;
using elementwise::Operand;
using elementwise::Place;
using elementwise::Problem;
using elementwise::ReadResult;

PyTypeObject* g_elementwise_type = nullptr;

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

// What is known for one list of argument types on one device.
struct Specialization {
  std::vector<uint8_t> numbers;  // of the arguments
  culaunch::Driver* driver;
  int ordinal;
  std::vector<uint8_t> outputs;
  // Of each argument: 1 mapped, 2 raw, 3 a scalar, 4 broadcast but not read, 0 not used.
  std::vector<uint8_t> roles;
  std::vector<ScalarPlan> scalars;
  bool uses_index;
  PyObject* token;  // owned: what Python makes kernels from
  std::atomic<CompiledLayout*> layouts{nullptr};
  Specialization* next;
};

// The lists only grow: a call walks them without a lock.
struct ElementwiseObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* name;        // owned, a str
  PyObject* parameters;  // owned, a tuple of str
  std::atomic<Specialization*> specializations;
  std::atomic<culaunch::Driver*> driver;  // of the last call
  // The entry of the type of array that came last: most calls bring the same one again.
  std::atomic<const TypeEntry*> last;
};

ElementwiseObject* Self(PyObject* self) { return reinterpret_cast<ElementwiseObject*>(self); }

std::string Text(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  return data != nullptr ? std::string(data, static_cast<size_t>(size)) : std::string();
}

// Whether an array is of a type whose arrays never change: a jax.Array.
bool IsImmutable(const Operand& operand) {
  static std::atomic<PyTypeObject*> changing{nullptr};  // a type that was found not to be
  if (changing.load(std::memory_order_relaxed) == Py_TYPE(operand.object)) return false;
  const Ref mark(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(operand.object)), "_weak_type"));
  PyErr_Clear();
  if (!mark) changing.store(Py_TYPE(operand.object), std::memory_order_relaxed);
  return static_cast<bool>(mark);
}

// The state of one call.
class ElementwiseCall {
 public:
  ElementwiseCall(ElementwiseObject* self, PyObject* const* args, size_t count)
      : self_(self), args_(args), count_(static_cast<int>(count)) {
    place_.driver = self->driver.load(std::memory_order_acquire);
    if (count > kInline) many_operands_ = std::make_unique<Operand[]>(count);
    operands_ = count > kInline ? many_operands_.get() : inline_operands_;
  }

  // A null reference with a Python error set, unless `fall_back` is set.
  PyObject* Run(PyObject* out);

  // What a call would run: (program, ordinal, kind, vector, rank, wide, classes).
  PyObject* Describe(PyObject* out);

  // Python must look at the arguments: one of them is of no known type.
  bool fall_back = false;

 private:
  std::string What(int index) const {
    return Text(self_->name) + ": argument " + Text(PyTuple_GetItem(self_->parameters, index));
  }
  std::string WhatOut(int index) const {
    return Text(self_->name) + ": out" +
           (special_->outputs.size() > 1 ? "[" + std::to_string(index) + "]" : "");
  }

  // Put what it is about before the message of the error that is set.
  void NameArgument(int index) const { Rename(What(index)); }
  static void Rename(const std::string& what);

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
  bool Launch(const CompiledLayout& compiled, const LayoutKey& key);
  PyObject* Result(PyObject* out);

  ElementwiseObject* self_;
  PyObject* const* args_;
  int count_;
  Place place_;
  Specialization* special_ = nullptr;
  static constexpr size_t kInline = 4;
  Operand inline_operands_[kInline];
  Operand inline_output_;
  std::unique_ptr<Operand[]> many_operands_;
  std::unique_ptr<Operand[]> many_outputs_;
  Operand* operands_;
  Operand* outputs_ = &inline_output_;
  std::vector<Ref> made_;
  Problem problem_;
};

void ElementwiseCall::Rename(const std::string& what) {
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

bool ElementwiseCall::ReadArguments() {
  const TypeEntry* last = self_->last.load(std::memory_order_acquire);
  for (int i = 0; i < count_; ++i) {
    operands_[i].entry = last;
    // Names are spelled out only where something is wrong.
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

// Ask Python for what these argument types make, if they are new.
bool ElementwiseCall::Specialize() {
  uint8_t numbers[elementwise::kMaxOperands];
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
  const Ref made(PyObject_CallMethod(reinterpret_cast<PyObject*>(self_), "_specialize", "y#",
                                     reinterpret_cast<const char*>(numbers),
                                     static_cast<Py_ssize_t>(count_)));
  if (!made) return false;
  const char* outputs = nullptr;
  const char* roles = nullptr;
  const char* scalars = nullptr;
  Py_ssize_t output_count, role_count, scalar_bytes;
  int uses_index = 0;
  PyObject* token = nullptr;
  if (!PyArg_ParseTuple(made.get(), "y#y#y#pO", &outputs, &output_count, &roles, &role_count,
                        &scalars, &scalar_bytes, &uses_index, &token)) {
    return false;
  }
  if (output_count + count_ > elementwise::kMaxOperands) {
    PyErr_Format(PyExc_ValueError, "%U has %zd inputs and outputs together, and at most %d may be",
                 self_->name, output_count + count_, elementwise::kMaxOperands);
    return false;
  }
  auto special = std::make_unique<Specialization>();
  special->numbers.assign(numbers, numbers + count);
  special->driver = place_.driver;
  special->ordinal = place_.device.device_id;
  special->outputs.assign(outputs, outputs + output_count);
  special->roles.assign(roles, roles + role_count);
  for (Py_ssize_t i = 0; i + 1 < scalar_bytes; i += 2) {
    special->scalars.push_back({scalars[i], static_cast<uint8_t>(scalars[i + 1])});
  }
  special->uses_index = uses_index != 0;
  special->token = Ref::Borrow(token).release();
  special_ = special.release();
  special_->next = head;
  while (!self_->specializations.compare_exchange_weak(special_->next, special_)) {
  }
  return true;
}

// Broadcast the arguments; where none is mapped, the shape is out's.
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
                 "%U: no argument gives the output a shape: pass out=", self_->name);
    return false;
  }
  if (before == nullptr) Broadcast(&problem_, outputs_[0]);  // raw arguments alone
  return true;
}

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
      Rename(WhatOut(index));
      return false;
    }
    if (result == ReadResult::kUnknownType || !operand.is_array) {
      PyErr_Format(PyExc_TypeError, "%s must be an array (got %R)", WhatOut(index).c_str(), object);
      return false;
    }
    if (operand.number != special_->outputs[i]) {
      PyErr_Format(PyExc_TypeError, "%s must be %s, the type of the result (got %s)",
                   WhatOut(index).c_str(), elementwise::NameOf(special_->outputs[i]),
                   elementwise::NameOf(operand.number));
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
    const elementwise::View& view = problem_.views[i];
    if (OverlapsItself(problem_, view)) {
      PyErr_Format(PyExc_ValueError, "%s has elements that share memory", WhatOut(i).c_str());
      return false;
    }
    for (int j = i + 1; j < problem_.count; ++j) {
      bool exact = false;
      if (!Overlap(problem_, view, problem_.views[j], &exact)) continue;
      if (exact && j >= outputs) continue;  // in place
      PyErr_Format(PyExc_ValueError,
                   "%s overlaps %s: out may be one of the arguments itself, or memory of its own",
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
      elementwise::View flat = whole.views[0];
      flat.data = const_cast<char*>(begin);
      std::fill(flat.strides, flat.strides + whole.ndim, 0);
      flat.item = static_cast<int>(std::min<int64_t>(bytes, INT32_MAX));
      if (bytes == 0 || !Overlap(whole, whole.views[0], flat, &exact)) continue;
      PyErr_Format(PyExc_ValueError, "%s overlaps the raw argument %s", WhatOut(i).c_str(),
                   Text(PyTuple_GetItem(self_->parameters, j)).c_str());
      return false;
    }
  }
  return true;
}

// Whether the outputs' dimensions are to lie in another order than C's: in that of the first
// argument that has their shape.
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
  int order[elementwise::kMaxDims];
  const int* wanted = WantsOrder(order) ? order : nullptr;
  for (size_t i = 0; i < special_->outputs.size(); ++i) {
    made_.push_back(Allocate(place_, special_->outputs[i], problem_.ndim, problem_.shape, wanted,
                             &outputs_[i]));
    if (!made_.back()) return false;
  }
  return true;
}

CompiledLayout* ElementwiseCall::FindKernel(const LayoutKey& key) {
  CompiledLayout* head = special_->layouts.load(std::memory_order_acquire);
  for (CompiledLayout* it = head; it != nullptr; it = it->next) {
    if (std::memcmp(&it->key, &key, sizeof key) == 0) return it;
  }
  const Ref made(PyObject_CallMethod(reinterpret_cast<PyObject*>(self_), "_make_kernel", "OiCiiiy#",
                                     special_->token, special_->ordinal, static_cast<int>(key.kind),
                                     static_cast<int>(key.vector), static_cast<int>(key.rank),
                                     static_cast<int>(key.wide), key.classes,
                                     static_cast<Py_ssize_t>(problem_.count)));
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
                 "again with culaunch.set_driver",
                 self_->name, place_.driver->name().c_str());
    Py_DECREF(kernel);
    delete compiled;
    return nullptr;
  }
  while (!special_->layouts.compare_exchange_weak(compiled->next, compiled)) {
  }
  return compiled;
}

// Fills a kernel's parameters in order.
class ParameterWriter {
 public:
  explicit ParameterWriter(const KernelObject& kernel) : kernel_(kernel) {
    if (kernel.bytes > sizeof inline_block_) {
      large_block_ = std::make_unique<unsigned char[]>(kernel.bytes);
      block_ = large_block_.get();
    }
    if (kernel.count > kInline) {
      many_pointers_ = std::make_unique<void*[]>(kernel.count);
      pointers_ = many_pointers_.get();
    }
  }

  // The next parameter's place, or null where the kernel has none of that size.
  unsigned char* Next(size_t size) {
    if (next_ == kernel_.count || kernel_.slots[next_].size != size) {
      is_wrong_ = true;
      return scratch_;
    }
    unsigned char* target = block_ + kernel_.slots[next_].offset;
    pointers_[next_++] = target;
    return target;
  }

  template <class T>
  void Put(const T& value) {
    std::memcpy(Next(sizeof value), &value, sizeof value);
  }

  // An index in the width of the kernel's.
  void PutIndex(int64_t value, bool wide) {
    if (wide) {
      Put(value);
    } else {
      Put(static_cast<int32_t>(value));
    }
  }

  size_t NextSize() const { return next_ < kernel_.count ? kernel_.slots[next_].size : 0; }
  bool IsComplete() const { return !is_wrong_ && next_ == kernel_.count; }
  void** pointers() { return pointers_; }

 private:
  static constexpr size_t kInline = 128;
  const KernelObject& kernel_;
  size_t next_ = 0;
  bool is_wrong_ = false;
  alignas(16) unsigned char scratch_[16];
  alignas(16) unsigned char inline_block_[1024];
  void* inline_pointers_[kInline];
  unsigned char* block_ = inline_block_;
  void** pointers_ = inline_pointers_;
  std::unique_ptr<unsigned char[]> large_block_;
  std::unique_ptr<void*[]> many_pointers_;
};

// Sizes and strides, in the order of culaunch._elementwise._source; gives the number of blocks.
uint64_t PutLayout(ParameterWriter* writer, const Problem& problem, const LayoutKey& key,
                   uint32_t unroll) {
  const bool wide = key.wide != 0;
  const auto put_division = [&](int64_t number) {
    if (wide) {
      writer->Put(number);
    } else {
      writer->Put(Division(static_cast<uint32_t>(number)));
    }
  };
  const int64_t size = problem.Size();
  const int64_t per_block = int64_t{elementwise::kBlock} * unroll;
  int first_stride = 0;
  uint64_t blocks = 0;
  if (key.kind == 'c') {
    writer->PutIndex(size, wide);
    const int64_t packs = size / key.vector;
    return static_cast<uint64_t>(std::max<int64_t>(1, (packs + per_block - 1) / per_block));
  }
  if (key.kind == 's') {
    writer->PutIndex(size, wide);
    for (int d = 0; d + 1 < problem.ndim; ++d) put_division(problem.shape[d]);
    first_stride = key.vector > 1 ? 1 : 0;
    blocks = static_cast<uint64_t>((size + per_block - 1) / per_block);
  } else {
    const auto tiles = [&](int d) {
      return (problem.shape[d] + elementwise::kTile - 1) / elementwise::kTile;
    };
    int64_t count = tiles(0) * tiles(1);
    for (int d = 2; d < problem.ndim; ++d) count *= problem.shape[d];
    writer->PutIndex(count, false);
    put_division(tiles(0));
    put_division(tiles(1));
    for (int d = 2; d + 1 < problem.ndim; ++d) put_division(problem.shape[d]);
    writer->PutIndex(problem.shape[0], false);
    writer->PutIndex(problem.shape[1], false);
    blocks = static_cast<uint64_t>(count);
  }
  for (int i = 0; i < problem.count; ++i) {
    for (int d = first_stride; d < problem.ndim; ++d) {
      writer->PutIndex(problem.views[i].strides[d], wide);
    }
  }
  return blocks;
}

bool ElementwiseCall::Launch(const CompiledLayout& compiled, const LayoutKey& key) {
  const KernelObject& kernel = *compiled.kernel;
  ParameterWriter writer(kernel);
  const size_t outputs = special_->outputs.size();
  for (size_t i = 0; i < outputs; ++i) writer.Put(problem_.views[i].data);
  size_t mapped = outputs;
  for (int i = 0; i < count_; ++i) {
    const uint8_t role = special_->roles[static_cast<size_t>(i)];
    if (role == 1) writer.Put(problem_.views[mapped++].data);
    if (role == 2) writer.Put(operands_[i].data);
  }
  for (const ScalarPlan& scalar : special_->scalars) {
    const size_t size = writer.NextSize();
    if (!StoreScalar(operands_[scalar.argument], scalar.number, writer.Next(size),
                     std::min<size_t>(size, 16))) {
      NameArgument(scalar.argument);
      return false;
    }
  }
  const uint64_t blocks = PutLayout(&writer, problem_, key, compiled.unroll);
  if (!writer.IsComplete()) {
    const Ref type = ErrorClass("InternalError");
    if (type) PyErr_SetString(type.get(), "a generated kernel has other parameters than its call");
    return false;
  }
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(std::min<uint64_t>(blocks, INT32_MAX));
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = elementwise::kBlock;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = place_.stream;
  const int ordinal = place_.device.device_id;
  culaunch::KernelState& state = *kernel.state;
  CUresult code;
  {
    const ReleaseGil released;
    code = state.Launch(config, ordinal, writer.pointers());
  }
  if (code == CUDA_SUCCESS) return true;
  try {
    RaiseError(culaunch::ExplainLaunch(state.driver(), state.handle(), state.name(), config,
                                       ordinal, code),
               "LaunchError");
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return false;
}

PyObject* ElementwiseCall::Result(PyObject* out) {
  if (out != nullptr) return Ref::Borrow(out).release();
  // JAX gets its array once it has been computed: its stream is its own.
  for (size_t i = 0; i < made_.size(); ++i) {
    if (!IsDeviceArray(made_[i].get()) || IsDeviceArray(place_.first->object)) break;
    const Ref module(PyImport_ImportModule("culaunch._elementwise._allocate"));
    if (!module) return nullptr;
    made_[i] =
        Ref(PyObject_CallMethod(module.get(), "finish", "OOK", place_.first->object, made_[i].get(),
                                reinterpret_cast<unsigned long long>(place_.stream)));
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
  int order[elementwise::kMaxDims];
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

// Read what there is and find the shape; outputs given are read.
bool ElementwiseCall::Prepare(PyObject* out) {
  if (!ReadArguments() || !Specialize()) return false;
  if (special_->outputs.size() > 1) {
    many_outputs_ = std::make_unique<Operand[]>(special_->outputs.size());
    outputs_ = many_outputs_.get();
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
        PyErr_Format(PyExc_ValueError, "%s is raw, and must be contiguous in C order",
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
  if (place_.driver->note_array != nullptr) {
    for (int i = 0; i < count_; ++i) NoteOperand(operands_[i], &place_);
    for (size_t i = 0; i < special_->outputs.size(); ++i) NoteOperand(outputs_[i], &place_);
  }
  const LayoutKey key = ChooseLayout(&problem_, special_->uses_index);
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
  if (!is_empty) key = ChooseLayout(&problem_, special_->uses_index);
  const char kind[] = {static_cast<char>(key.kind), 0};
  return Py_BuildValue("Oisiiiy#", special_->token, special_->ordinal, kind,
                       static_cast<int>(key.vector), static_cast<int>(key.rank),
                       static_cast<int>(key.wide), key.classes,
                       static_cast<Py_ssize_t>(problem_.count));
}

PyObject* CallSlowly(PyObject* self, PyObject* const* args, size_t count, PyObject* names) {
  const Ref positional(PyTuple_New(static_cast<Py_ssize_t>(count)));
  const Ref keywords(PyDict_New());
  if (!positional || !keywords) return nullptr;
  for (size_t i = 0; i < count; ++i) {
    PyTuple_SetItem(positional.get(), static_cast<Py_ssize_t>(i), Ref::Borrow(args[i]).release());
  }
  const Py_ssize_t named = names != nullptr ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    if (PyDict_SetItem(keywords.get(), PyTuple_GetItem(names, i),
                       args[count + static_cast<size_t>(i)]) < 0) {
      return nullptr;
    }
  }
  return PyObject_CallMethod(self, "_call_slowly", "OO", positional.get(), keywords.get());
}

PyObject* CallElementwise(PyObject* callable, PyObject* const* args, size_t nargsf,
                          PyObject* names) {
  ElementwiseObject* self = Self(callable);
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  const Py_ssize_t named = names != nullptr ? PyTuple_Size(names) : 0;
  PyObject* out = nullptr;
  bool is_plain = static_cast<Py_ssize_t>(count) == PyTuple_Size(self->parameters) && named <= 1;
  if (is_plain && named == 1) {
    is_plain = PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "out") == 0;
    out = args[count] != Py_None ? args[count] : nullptr;
  }
  if (!is_plain || count >= elementwise::kMaxOperands) {
    return CallSlowly(callable, args, count, names);
  }
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    ElementwiseCall call(self, args, count);
    PyObject* result = call.Run(out);
    return call.fall_back ? CallSlowly(callable, args, count, names) : result;
  });
}

// Elementwise(name, parameters)
PyObject* New(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* name = nullptr;
  PyObject* parameters = nullptr;
  if (!PyArg_ParseTuple(args, "UO!:Elementwise", &name, &PyTuple_Type, &parameters)) return nullptr;
  PyObject* object = PyType_GenericAlloc(type, 0);
  if (object == nullptr) return nullptr;
  ElementwiseObject* self = Self(object);
  self->vectorcall = CallElementwise;
  self->name = Ref::Borrow(name).release();
  self->parameters = Ref::Borrow(parameters).release();
  new (&self->specializations) std::atomic<Specialization*>(nullptr);
  new (&self->driver) std::atomic<culaunch::Driver*>(nullptr);
  new (&self->last) std::atomic<const TypeEntry*>(nullptr);
  return object;
}

int Traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  for (Specialization* it = Self(object)->specializations.load(); it != nullptr; it = it->next) {
    Py_VISIT(it->token);
    for (CompiledLayout* one = it->layouts.load(); one != nullptr; one = one->next) {
      Py_VISIT(reinterpret_cast<PyObject*>(one->kernel));
    }
  }
  return 0;
}

// A call may come until the object goes: what it needs stays until then. Python's half, which
// may hold a cycle, is the subclass's dict, and cleared with it.
int Clear(PyObject*) { return 0; }

void Dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  ElementwiseObject* self = Self(object);
  PyObject_GC_UnTrack(object);
  while (Specialization* special = self->specializations.load()) {
    self->specializations = special->next;
    while (CompiledLayout* compiled = special->layouts.load()) {
      special->layouts = compiled->next;
      Py_DECREF(reinterpret_cast<PyObject*>(compiled->kernel));
      delete compiled;
    }
    Py_XDECREF(special->token);
    delete special;
  }
  Py_XDECREF(self->name);
  Py_XDECREF(self->parameters);
  PyObject_GC_Del(object);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// _describe(arguments, out)
PyObject* Describe(PyObject* object, PyObject* args) {
  PyObject* arguments = nullptr;
  PyObject* out = nullptr;
  if (!PyArg_ParseTuple(args, "O!O:_describe", &PyTuple_Type, &arguments, &out)) return nullptr;
  std::vector<PyObject*> items;
  for (Py_ssize_t i = 0; i < PyTuple_Size(arguments); ++i) {
    items.push_back(PyTuple_GetItem(arguments, i));
  }
  return Guarded<PyObject*>(nullptr, nullptr, [&] {
    ElementwiseCall call(Self(object), items.data(), items.size());
    return call.Describe(out != Py_None ? out : nullptr);
  });
}

PyMethodDef methods[] = {
    {"_describe", Describe, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ElementwiseObject, vectorcall), READONLY,
     nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(New)},
    {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(Traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(Clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, nullptr},
};

PyType_Spec spec = {
    "culaunch._core.Elementwise", sizeof(ElementwiseObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    slots};

}  // namespace

int AddElementwiseType(PyObject* module) {
  g_elementwise_type = AddType(module, &spec);
  return g_elementwise_type != nullptr ? 0 : -1;
}
