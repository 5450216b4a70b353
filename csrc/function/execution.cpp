#include "function/execution.h"

#include <culaunch/guard.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "arguments/allocate.h"
#include "arguments/device_array.h"
#include "arguments/device_array_exchange.h"
#include "arguments/torch_tensor.h"
#include "driver/errors.h"
#include "formats/half.h"
#include "launch/launch_failure.h"
#include "python/free_threaded_lock.h"
#include "python/upcalls.h"

namespace function {

namespace {

constexpr size_t kAlignment = 16;  // of what a program allocates

double AsFloat(Word word) {
  double value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

void SetAllocationError(void*, const char* kind, const char* message) {
  if (PyErr_Occurred() == nullptr) PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message);
}

// The number of bytes of a dense array; false where it is more than there can be.
bool BytesOf(const Effect& effect, const Word* registers, size_t* bytes) {
  int64_t size = operands::ItemSize(effect.number);
  bool is_empty = false;
  bool fits = true;
  for (const int32_t index : effect.shape) {
    const Word dim = registers[index];
    is_empty = is_empty || dim == 0;
    fits = fits && !__builtin_mul_overflow(size, std::max<Word>(dim, 1), &size);
  }
  *bytes = is_empty ? 0 : static_cast<size_t>(size);
  return fits;
}

// What a view that is shown to Python keeps: the array that it is a view of, and its own shape.
struct HeldView {
  DLManagedTensorVersioned managed;
  PyObject* owner;
  int64_t room[2 * operands::kMaxDims];
};

void DeleteView(DLManagedTensorVersioned* managed) {
  auto* held = static_cast<HeldView*>(managed->manager_ctx);
  if (Py_IsInitialized() != 0) {
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(held->owner);
    PyGILState_Release(state);
  }
  delete held;
}

Ref TupleOf(const int64_t* numbers, int count) {
  Ref tuple(PyTuple_New(count));
  for (int i = 0; tuple && i < count; ++i) {
    PyTuple_SetItem(tuple.get(), i, PyLong_FromLongLong(numbers[i]));
  }
  return tuple;
}

}  // namespace

Execution::Execution(FunctionCall& call)
    : call_(call), program_(*call.program_), registers_(call.program_->registers) {
  for (size_t i = program_.argument_arrays; i < program_.arrays; ++i) {
    call_.arrays_[i].object = nullptr;
    call_.arrays_[i].is_owned = false;
    call_.arrays_[i].managed = nullptr;
  }
}

Execution::~Execution() {
  for (size_t i = program_.argument_arrays; i < program_.arrays; ++i) {
    ArrayValue& value = call_.arrays_[i];
    if (value.managed != nullptr && value.managed->deleter != nullptr) {
      value.managed->deleter(value.managed);
    }
    if (value.is_owned) Py_XDECREF(value.object);
  }
}

// ---- the plan

inline bool Execution::Recall() {
  auto& program = const_cast<Program&>(program_);
  const FreeThreadedLock lock(program.mutex);
  const Memo& memo = program.memo;
  if (memo.leaf < 0 || !std::equal(memo.inputs.begin(), memo.inputs.end(), call_.inputs_.data())) {
    return false;
  }
  std::copy(memo.registers.begin(), memo.registers.end(), registers_.data());
  leaf_ = memo.leaf;
  return true;
}

void Execution::Remember() {
  auto& program = const_cast<Program&>(program_);
  const FreeThreadedLock lock(program.mutex);
  Memo& memo = program.memo;
  const Word* inputs = call_.inputs_.data();
  memo.inputs.assign(inputs, inputs + program.inputs.size());
  memo.registers.assign(registers_.data(), registers_.data() + program.registers);
  memo.leaf = leaf_;
}

PlanEnd Execution::Plan() {
  if (!CULAUNCH_UNLIKELY(!Recall())) {
    is_checked_ = true;
    return PlanEnd::kLeaf;
  }
  std::fill(registers_.data(), registers_.data() + program_.registers, 0);
  return RunPlan(call_.state_.self, program_, call_.inputs_.data(), call_.place_.driver,
                 call_.place_.device.device_id, registers_.data(), &leaf_);
}

// ---- what can be known before

bool Execution::CheckAllocation(const Effect& effect) {
  size_t bytes = 0;
  const Word* registers = registers_.data();
  const bool is_negative = std::any_of(effect.shape.begin(), effect.shape.end(),
                                       [&](int32_t index) { return registers[index] < 0; });
  if (!is_negative && (effect.code == EffectCode::kView || BytesOf(effect, registers, &bytes))) {
    return true;
  }
  std::vector<int64_t> shape;
  for (const int32_t index : effect.shape) shape.push_back(registers[index]);
  const Ref tuple = TupleOf(shape.data(), static_cast<int>(shape.size()));
  if (tuple) {
    PyErr_Format(PyExc_ValueError,
                 is_negative ? "a dimension of the shape %R is negative"
                             : "an array of the shape %R is larger than any memory",
                 tuple.get());
  }
  PrefixError(Text(effect));
  return false;
}

culaunch::LaunchConfig Execution::ConfigOf(const Effect& effect) const {
  const function::Launch& launch = *effect.launch;
  const auto dims = [&](int first) {
    return culaunch::Dim3(static_cast<uint32_t>(Int(launch.dims[first])),
                          static_cast<uint32_t>(Int(launch.dims[first + 1])),
                          static_cast<uint32_t>(Int(launch.dims[first + 2])));
  };
  culaunch::LaunchConfig config(dims(0), dims(3), SharedMemoryOf(launch));
  if ((launch.flags & kHasCluster) != 0) config.cluster = dims(6);
  if ((launch.flags & kHasPreferredCluster) != 0) config.preferred_cluster = dims(9);
  config.cooperative = (launch.flags & kCooperative) != 0;
  config.programmatic = (launch.flags & kProgrammatic) != 0;
  config.has_priority = (launch.flags & kHasPriority) != 0;
  if (config.has_priority) config.priority = static_cast<int>(Int(launch.priority));
  return config;
}

// Whether a kernel can run with blocks of this size: that may depend on its registers.
bool Execution::TakesBlock(culaunch::KernelState& kernel,
                           const culaunch::LaunchConfig& config) const {
  const culaunch::Driver& driver = *call_.place_.driver;
  const int ordinal = call_.place_.device.device_id;
  const CUkernel handle = kernel.handle();
  constexpr uint64_t kAlways = 128;
  int most = 0;
  if (config.block.Volume() <= kAlways || handle == nullptr || ordinal < 0 ||
      ordinal >= driver.device_count()) {
    return true;
  }
  const CUresult code = driver.cuKernelGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                                    handle, driver.Handle(ordinal));
  return code != CUDA_SUCCESS || config.block.Volume() <= static_cast<uint64_t>(most);
}

bool Execution::CheckLaunch(const Effect& effect) {
  const function::Launch& launch = *effect.launch;
  static constexpr const char* names[] = {"grid", "block", "cluster", "preferred_cluster"};
  for (int i = 0; i < 12; ++i) {
    if (launch.dims[i] < 0) continue;
    const Word dim = Int(launch.dims[i]);
    if (dim >= 0 && dim <= UINT32_MAX) continue;
    PyErr_Format(PyExc_OverflowError, "%s must be from 1 to 2^31 - 1 in every dimension (got %lld)",
                 names[i / 3], static_cast<long long>(dim));
    PrefixError(Text(effect));
    return false;
  }
  const Word shared = launch.shared_memory >= 0 ? Int(launch.shared_memory) : 0;
  if (shared < 0 || shared > UINT32_MAX) {
    PyErr_Format(PyExc_OverflowError,
                 "shared_memory must be a number of bytes, an int from 0 to 2^32 - 1 (got %lld)",
                 static_cast<long long>(shared));
    PrefixError(Text(effect));
    return false;
  }
  if (launch.priority >= 0 && Int(launch.priority) != static_cast<int>(Int(launch.priority))) {
    PyErr_Format(PyExc_OverflowError, "priority must be an int of 32 bits (got %lld)",
                 static_cast<long long>(Int(launch.priority)));
    PrefixError(Text(effect));
    return false;
  }
  const culaunch::LaunchConfig config = ConfigOf(effect);
  const bool is_valid = Guarded<bool>(nullptr, false, [&] {
    config.Validate();
    return true;
  });
  if (!is_valid) {
    PrefixError(Text(effect));
    return false;
  }
  // What no device can do would be refused after the launches before it.
  const bool is_usual = config.grid.y <= 65535 && config.grid.z <= 65535 &&
                        config.grid.x <= INT32_MAX && config.block.Volume() <= 1024 &&
                        config.block.z <= 64 && config.shared_memory <= (228u << 10);
  if (is_usual && TakesBlock(*launch.kernel->state, config)) return true;
  RaiseLaunchFailure(*launch.kernel->state, culaunch::DriverLaunchConfig(config).get(),
                     call_.place_.device.device_id, CUDA_ERROR_INVALID_VALUE);
  PrefixError(Text(effect));
  return false;
}

bool Execution::CheckEffects() {
  for (const Effect& effect : program_.blocks[static_cast<size_t>(leaf_)].effects) {
    if (effect.code == EffectCode::kAllocate || effect.code == EffectCode::kView) {
      if (!CheckAllocation(effect)) return false;
    } else if (effect.code == EffectCode::kLaunch && !IsSkipped(effect)) {
      if (!CheckLaunch(effect)) return false;
    }
  }
  return true;
}

// ---- arrays

bool Execution::ReadConstantArray(const Effect& effect) {
  PyObject* object = PyTuple_GetItem(program_.constants, effect.source);
  CallPlace& place = call_.place_;
  operands::Place own;
  own.types = operands::kAllTypes;
  own.checks_gradient = false;
  own.driver = place.driver;
  operands::Operand operand;
  const operands::ReadResult result =
      operands::ReadOperand(object, "an array that the function closes over", &own, &operand);
  if (result == operands::ReadResult::kFailed) return false;
  if (result != operands::ReadResult::kDone || !operand.is_array) {
    PyErr_SetString(PyExc_TypeError, "what the function closes over as an array is none");
    return false;
  }
  if (place.first == nullptr) {
    place.first = object;
    place.entry = LookUpObject(object, &operand.scratch);
    if (place.entry == &operand.scratch) place.entry = nullptr;
    place.device = operand.device;
    place.stream = own.stream;
  } else if (operand.device.device_id != place.device.device_id ||
             operand.device.device_type != place.device.device_type) {
    PyErr_Format(PyExc_ValueError,
                 "an array that the function closes over is on device %d of DLPack type %d, and "
                 "its arguments are on device %d of type %d",
                 operand.device.device_id, operand.device.device_type, place.device.device_id,
                 place.device.device_type);
    return false;
  }
  const DLTensor tensor = {operand.data,
                           operand.device,
                           operand.ndim,
                           operands::TypeOf(operand.number),
                           const_cast<int64_t*>(operand.shape),
                           const_cast<int64_t*>(operand.strides),
                           0};
  const Extent extent = ExtentOf(tensor);
  ArrayValue& value = call_.arrays_[static_cast<size_t>(effect.array)];
  value.data = operand.data;
  value.object = object;
  value.number = operand.number;
  value.base = effect.array;
  value.effect = nullptr;
  value.begin = static_cast<const char*>(extent.begin);
  value.bytes = extent.bytes;
  if (operand.owner) call_.owners_.push_back(std::move(operand.owner));
  return true;
}

bool Execution::AllocateAsFramework(const Effect& effect, const int64_t* shape) {
  const CallPlace& place = call_.place_;
  ArrayValue& value = call_.arrays_[static_cast<size_t>(effect.array)];
  const int rank = static_cast<int>(effect.shape.size());
  if (place.first == nullptr || place.entry == nullptr) {
    const Ref tuple = TupleOf(shape, rank);
    const DLDataType type = operands::TypeOf(effect.number);
    if (!tuple) return false;
    Ref array =
        CallUp(Upcall::kAllocateArray, "Oiiiii", tuple.get(), int{type.code}, int{type.bits},
               int{type.lanes}, place.device.device_type, place.device.device_id);
    if (!array) return false;
    value.data = static_cast<char*>(ViewOf(array.get()).data);
    value.object = array.release();
    value.is_owned = true;
    return true;
  }
  operands::Operand first;
  first.object = place.first;
  first.entry = place.entry;
  operands::Place own;
  own.driver = place.driver;
  own.device = place.device;
  own.first = &first;
  own.stream = place.stream;
  own.types = operands::kAllTypes;
  own.checks_gradient = false;
  operands::Operand made;
  Ref array = operands::Allocate(own, effect.number, rank, shape, nullptr, &made);
  if (!array) return false;
  value.data = made.data;
  value.object = array.release();
  value.is_owned = true;
  return true;
}

bool Execution::Allocate(const Effect& effect) {
  const CallPlace& place = call_.place_;
  ArrayValue& value = call_.arrays_[static_cast<size_t>(effect.array)];
  int64_t shape[operands::kMaxDims];
  const auto rank = static_cast<int32_t>(effect.shape.size());
  for (int32_t i = 0; i < rank; ++i) shape[i] = Int(effect.shape[static_cast<size_t>(i)]);
  size_t bytes = 0;
  BytesOf(effect, registers_.data(), &bytes);
  const DLPackExchangeAPI* api =
      place.entry != nullptr && place.entry->kind == ArgumentKind::kExchange ? place.entry->api
                                                                             : nullptr;
  if (api != nullptr && api != DeviceArrayExchange() && api->managed_tensor_allocator != nullptr) {
    DLTensor prototype = {nullptr, place.device, rank, operands::TypeOf(effect.number),
                          shape,   nullptr,      0};
    DLManagedTensorVersioned* managed = nullptr;
    if (api->managed_tensor_allocator(&prototype, &managed, nullptr, SetAllocationError) != 0) {
      if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, "allocation failed");
      return false;
    }
    value.data = static_cast<char*>(managed->dl_tensor.data) + managed->dl_tensor.byte_offset;
    value.managed = managed;
  } else if (!AllocateAsFramework(effect, shape)) {
    return false;
  }
  value.number = effect.number;
  value.base = effect.array;
  value.effect = &effect;
  value.begin = value.data;
  value.bytes = bytes;
  if (reinterpret_cast<uintptr_t>(value.data) % kAlignment != 0 && bytes != 0) {
    PyErr_Format(PyExc_RuntimeError,
                 "the framework allocated an array at %p, which is no multiple of 16", value.data);
    return false;
  }
  return true;
}

inline void Execution::MakeView(const Effect& effect) {
  ArrayValue& value = call_.arrays_[static_cast<size_t>(effect.array)];
  const ArrayValue& source = call_.arrays_[static_cast<size_t>(effect.source)];
  const auto address = reinterpret_cast<uintptr_t>(source.data);
  value.data = reinterpret_cast<char*>(address + static_cast<uintptr_t>(Int(effect.value)));
  value.number = effect.number;
  value.base = source.base;
  value.effect = &effect;
}

// Whether all elements of a view lie in the memory of what it is a view of.
bool Execution::IsInside(const ArrayValue& base, const DLTensor& view) const {
  const int64_t item = int64_t{view.dtype.bits} * view.dtype.lanes / 8;
  int64_t low = 0;
  int64_t high = item;
  bool fits = true;
  for (int32_t i = 0; i < view.ndim; ++i) {
    if (view.shape[i] == 0) return true;
    int64_t reach = 0;
    fits = fits && !__builtin_mul_overflow(view.shape[i] - 1, view.strides[i], &reach) &&
           !__builtin_mul_overflow(reach, item, &reach);
    int64_t& end = reach < 0 ? low : high;
    fits = fits && !__builtin_add_overflow(end, reach, &end);
  }
  const auto data = static_cast<int64_t>(reinterpret_cast<uintptr_t>(view.data));
  const auto begin = static_cast<int64_t>(reinterpret_cast<uintptr_t>(base.begin));
  return fits && !__builtin_add_overflow(low, data, &low) &&
         !__builtin_add_overflow(high, data, &high) && low >= begin &&
         high - begin <= static_cast<int64_t>(base.bytes);
}

// A view as an array of the framework that owns what it is a view of.
PyObject* Execution::ObjectOfView(int32_t array) {
  ArrayValue& value = call_.arrays_[static_cast<size_t>(array)];
  const Effect& effect = *value.effect;
  PyObject* owner = ObjectOf(value.base);
  if (owner == nullptr) return nullptr;
  auto held = std::make_unique<HeldView>();
  const auto rank = static_cast<int32_t>(effect.shape.size());
  for (int32_t i = 0; i < rank; ++i) {
    held->room[i] = Int(effect.shape[static_cast<size_t>(i)]);
    held->room[rank + i] = Int(effect.strides[static_cast<size_t>(i)]);
  }
  const DLTensor tensor = {value.data, call_.place_.device, rank, operands::TypeOf(value.number),
                           held->room, held->room + rank,   0};
  if (!IsInside(call_.arrays_[static_cast<size_t>(value.base)], tensor)) {
    PyErr_SetString(PyExc_ValueError, "a view reaches outside of the memory of its array");
    PrefixError(Text(effect));
    return nullptr;
  }
  const bool is_own = IsDeviceArray(owner);
  const TypeEntry* entry = call_.place_.entry;
  const DLPackExchangeAPI* api =
      is_own ? DeviceArrayExchange()
             : (entry != nullptr && entry->kind == ArgumentKind::kExchange ? entry->api : nullptr);
  if (api == nullptr) {
    const Ref shape = TupleOf(held->room, rank);
    const Ref strides = TupleOf(held->room + rank, rank);
    if (!shape || !strides) return nullptr;
    value.object = CallUp(Upcall::kViewOf, "OKOOs", owner,
                          static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(value.data)),
                          shape.get(), strides.get(), operands::NameOf(value.number))
                       .release();
    value.is_owned = value.object != nullptr;
    return value.object;
  }
  held->managed.version = {1, 0};
  held->managed.flags = 0;
  held->managed.dl_tensor = tensor;
  held->managed.manager_ctx = held.get();
  held->managed.deleter = DeleteView;
  held->owner = Ref::Borrow(owner).release();
  void* object = nullptr;
  DLManagedTensorVersioned* managed = &held.release()->managed;
  if (api->managed_tensor_to_py_object_no_sync(managed, &object) != 0) {
    DeleteView(managed);
    return nullptr;
  }
  value.object = static_cast<PyObject*>(object);
  value.is_owned = true;
  return value.object;
}

// An array as Python has it, borrowed. Null with a Python error set.
PyObject* Execution::ObjectOf(int32_t array) {
  ArrayValue& value = call_.arrays_[static_cast<size_t>(array)];
  if (value.object != nullptr) return value.object;
  if (value.base != array) return ObjectOfView(array);
  value.object = ObjectOfAllocated(call_.place_.entry->api, std::exchange(value.managed, nullptr));
  value.is_owned = value.object != nullptr;
  return value.object;
}

// ---- launches

CUresult Execution::EncodeMap(const Part& part, unsigned char* target) {
  culaunch::Driver& driver = *call_.place_.driver;
  if (driver.cuTensorMapEncodeTiled == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  cuuint64_t sizes[5] = {};
  cuuint64_t strides[5] = {};
  cuuint32_t box[5] = {};
  cuuint32_t steps[5] = {};
  const auto rank = static_cast<size_t>(part.rank);
  const int32_t* next = part.registers.data();
  // The driver has the fastest dimension first.
  for (size_t i = rank; i-- > 0;) sizes[i] = static_cast<cuuint64_t>(Int(*next++));
  for (size_t i = rank - 1; i-- > 0;) strides[i] = static_cast<cuuint64_t>(Int(*next++));
  for (cuuint32_t* numbers : {box, steps}) {
    for (size_t i = rank; i-- > 0;) {
      const Word value = Int(*next++);
      if (value < 0 || value > UINT32_MAX) return CUDA_ERROR_INVALID_VALUE;
      numbers[i] = static_cast<cuuint32_t>(value);
    }
  }
  CUtensorMap map;  // cuda.h says how it is aligned
  const CUresult code = driver.cuTensorMapEncodeTiled(
      &map, static_cast<CUtensorMapDataType>(part.map[0]), static_cast<cuuint32_t>(rank),
      call_.arrays_[static_cast<size_t>(part.index)].data, sizes, strides, box, steps,
      static_cast<CUtensorMapInterleave>(part.map[1]), static_cast<CUtensorMapSwizzle>(part.map[2]),
      static_cast<CUtensorMapL2promotion>(part.map[3]),
      static_cast<CUtensorMapFloatOOBfill>(part.map[4]));
  if (code == CUDA_SUCCESS) std::memcpy(target, &map, sizeof map);
  return code;
}

// Write a parameter, or a field of one.
inline CUresult Execution::Fill(const Part& part, unsigned char* target) {
  if (part.source == Source::kArray) {
    const char* data = call_.arrays_[static_cast<size_t>(part.index)].data;
    std::memcpy(target, &data, sizeof data);
  } else if (part.source == Source::kInt) {
    const Word value = Int(part.index);  // little-endian: the low bytes
    if (part.size == 4) {
      std::memcpy(target, &value, 4);
    } else {
      std::memcpy(target, &value, part.size);
    }
  } else if (part.source == Source::kFloat) {
    const double value = AsFloat(Int(part.index));
    const auto narrow = static_cast<float>(value);
    constexpr uint8_t kBfloat = 4;
    if (part.size == sizeof narrow) {
      std::memcpy(target, &narrow, sizeof narrow);
    } else if (part.size == sizeof value) {
      std::memcpy(target, &value, sizeof value);
    } else {
      const uint16_t bits = part.code == kBfloat ? Bfloat16Bits(value) : Float16Bits(value);
      std::memcpy(target, &bits, sizeof bits);
    }
  } else if (part.source == Source::kBool) {
    *target = Int(part.index) != 0 ? 1 : 0;
  } else if (part.source == Source::kNull) {
    std::memset(target, 0, part.size);
  } else if (part.source == Source::kBytes) {
    std::memcpy(target, part.bytes.data(), part.size);
    for (const Part& field : part.fields) {
      const CUresult code = Fill(field, target + field.offset);
      if (code != CUDA_SUCCESS) return code;
    }
  } else {
    return EncodeMap(part, target);
  }
  return CUDA_SUCCESS;
}

inline CUresult Execution::Launch(const Effect& effect, Failure* failure) {
  const function::Launch& launch = *effect.launch;
  const KernelObject& kernel = *launch.kernel;
  // Kernels have at most 4 KiB of parameters, or 32,764 bytes from CUDA 12.1 on.
  SmallBuffer<unsigned char, 4096, 64> block(kernel.bytes);
  SmallBuffer<void*, 64> pointers(kernel.count);
  void** pointer = pointers.data();
  for (const Part& part : launch.parts) {
    unsigned char* target = block.data() + part.offset;
    *pointer++ = target;
    const CUresult code = Fill(part, target);
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
      failure->what = "encoding a tensor map for";
      return code;
    }
  }
  const int ordinal = call_.place_.device.device_id;
  CUresult code;
  if (CULAUNCH_UNLIKELY((launch.flags & ~kHasSharedMemory) != 0)) {
    const culaunch::DriverLaunchConfig config(ConfigOf(effect));
    CUlaunchConfig own = config.get();
    own.hStream = call_.place_.stream;
    code = kernel.state->Launch(own, ordinal, pointers.data());
    if (code != CUDA_SUCCESS) failure->config = own;
    return code;
  }
  CUlaunchConfig config;
  config.gridDimX = static_cast<unsigned>(Int(launch.dims[0]));
  config.gridDimY = static_cast<unsigned>(Int(launch.dims[1]));
  config.gridDimZ = static_cast<unsigned>(Int(launch.dims[2]));
  config.blockDimX = static_cast<unsigned>(Int(launch.dims[3]));
  config.blockDimY = static_cast<unsigned>(Int(launch.dims[4]));
  config.blockDimZ = static_cast<unsigned>(Int(launch.dims[5]));
  config.sharedMemBytes = SharedMemoryOf(launch);
  config.hStream = call_.place_.stream;
  config.attrs = nullptr;
  config.numAttrs = 0;
  code = kernel.state->Launch(config, ordinal, pointers.data());
  if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) failure->config = config;
  return code;
}

CUresult Execution::FillMemory(CUdeviceptr begin, Word value, size_t bytes) {
  culaunch::Driver& driver = *call_.place_.driver;
  if (bytes == 0) return CUDA_SUCCESS;
  const culaunch::DeviceGuard guard(driver, call_.place_.device.device_id);
  if (guard.code() != CUDA_SUCCESS) return guard.code();
  if (driver.note_array != nullptr && call_.place_.device.device_type == culaunch::kDLCPU) {
    // An emulated device's memory is the host's: a framework's array is none of its allocations.
    const CUresult code = driver.cuStreamSynchronize(call_.place_.stream);
    if (code == CUDA_SUCCESS)
      std::memset(reinterpret_cast<void*>(begin), static_cast<int>(value), bytes);
    return code;
  }
  return driver.cuMemsetD8Async(begin, static_cast<unsigned char>(value), bytes,
                                call_.place_.stream);
}

// Tell the driver of the arrays that the next launch may touch.
CULAUNCH_APART void Execution::TellDriver() const {
  const culaunch::Driver& driver = *call_.place_.driver;
  driver.note_array(nullptr, 0, culaunch::kNoteLaunch);
  for (size_t i = 0; i < program_.arrays; ++i) {
    const ArrayValue& value = call_.arrays_[i];
    const bool is_made =
        i < program_.argument_arrays || value.object != nullptr || value.managed != nullptr;
    if (!is_made || value.base != static_cast<int32_t>(i)) continue;
    driver.note_array(value.begin, value.bytes, culaunch::kNoteArray);
  }
}

bool Execution::CheckFill(const Effect& effect) {
  const ArrayValue& value = call_.arrays_[static_cast<size_t>(effect.array)];
  const ArrayValue& base = call_.arrays_[static_cast<size_t>(value.base)];
  const Word bytes = Int(effect.bytes);
  const auto before = static_cast<int64_t>(value.data - base.begin);
  const auto room = static_cast<int64_t>(base.bytes);
  if (bytes == 0 || (bytes > 0 && before >= 0 && before <= room && bytes <= room - before)) {
    return true;
  }
  PyErr_Format(PyExc_ValueError, "%lld bytes to fill are not inside of the array",
               static_cast<long long>(bytes));
  PrefixError(Text(effect));
  return false;
}

const Effect* Execution::Enqueue(const Effect* effect, const Effect* end, Failure* failure) {
  const bool is_noted = call_.place_.driver->note_array != nullptr;
  if (CULAUNCH_UNLIKELY(is_noted)) TellDriver();
  // A launch waits while the stream's queue is full.
  const ReleaseGil released;
  for (; effect != end; ++effect) {
    CUresult code = CUDA_SUCCESS;
    if (effect->code == EffectCode::kLaunch) {
      if (CULAUNCH_UNLIKELY(effect->predicate >= 0) && IsSkipped(*effect)) continue;
      code = Launch(*effect, failure);
    } else if (effect->code == EffectCode::kView) {
      MakeView(*effect);
    } else {
      break;
    }
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
      failure->effect = effect;
      failure->code = code;
      break;
    }
    if (CULAUNCH_UNLIKELY(is_noted)) return effect + 1;
  }
  return effect;
}

bool Execution::RaiseFailure(const Failure& failure) const {
  culaunch::KernelState& state = *failure.effect->launch->kernel->state;
  if (failure.what == nullptr) {
    RaiseLaunchFailure(state, failure.config, call_.place_.device.device_id, failure.code);
  } else {
    Guarded<bool>("LaunchError", false, [&] {
      state.driver().Check(failure.code,
                           std::string(failure.what) + " " + culaunch::Demangle(state.name()));
      return true;
    });
  }
  PrefixError(Text(*failure.effect));
  return false;
}

// ---- calls and results

bool Execution::Call(const Effect& effect) {
  const CallRecord& call = *effect.call;
  const size_t count = call.arguments.size();
  std::vector<Ref> held;
  std::vector<PyObject*> objects;
  objects.reserve(count + 1);
  for (const auto& [kind, index] : call.arguments) {
    Ref made;
    objects.push_back(kind == Value::kArray ? ObjectOf(index) : Simple(kind, index, &made));
    if (objects.back() == nullptr) return false;
    if (made) held.push_back(std::move(made));
  }
  Ref names;
  if (!call.outputs.empty()) {
    static PyObject* const out = PyUnicode_InternFromString("out");
    Ref outputs;
    if (call.outputs.size() == 1) {
      outputs = Ref::Borrow(ObjectOf(call.outputs[0]));
    } else {
      outputs = Ref(PyTuple_New(static_cast<Py_ssize_t>(call.outputs.size())));
      for (size_t i = 0; outputs && i < call.outputs.size(); ++i) {
        PyObject* object = ObjectOf(call.outputs[i]);
        if (object == nullptr) return false;
        PyTuple_SetItem(outputs.get(), static_cast<Py_ssize_t>(i), Ref::Borrow(object).release());
      }
    }
    names = Ref(PyTuple_New(1));
    if (!outputs || !names) return false;
    PyTuple_SetItem(names.get(), 0, Ref::Borrow(out).release());
    objects.push_back(outputs.get());
    held.push_back(std::move(outputs));
  }
  const Ref done(PyObject_Vectorcall(call.callable, objects.data(), count, names.get()));
  if (done) return true;
  PrefixError(Text(effect));
  return false;
}

// JAX gets its array once it has been computed: its stream is its own.
Ref Execution::Finish(PyObject* object) {
  const CallPlace& place = call_.place_;
  if (place.first == nullptr || !IsDeviceArray(object) || IsDeviceArray(place.first)) {
    return Ref::Borrow(object);
  }
  return CallUp(Upcall::kFinishAllocation, "OOK", place.first, object,
                reinterpret_cast<unsigned long long>(place.stream));
}

// A value that is no array, borrowed; `made` keeps it where it is new.
PyObject* Execution::Simple(Value kind, int32_t index, Ref* made) const {
  switch (kind) {
    case Value::kInt:
      *made = Ref(PyLong_FromLongLong(Int(index)));
      return made->get();
    case Value::kFloat:
      *made = Ref(PyFloat_FromDouble(AsFloat(Int(index))));
      return made->get();
    case Value::kBool:
      return Int(index) != 0 ? Py_True : Py_False;
    case Value::kArgument:
      return call_.args_[index];
    case Value::kConstant:
      return PyTuple_GetItem(program_.constants, index);
    default:
      return Py_None;
  }
}

Ref Execution::Items(const Word** word, bool is_list) {
  const auto count = static_cast<Py_ssize_t>(*(*word)++);
  Ref items(is_list ? PyList_New(count) : PyTuple_New(count));
  for (Py_ssize_t i = 0; items && i < count; ++i) {
    PyObject* item = Result(word).release();
    if (item == nullptr) return Ref();
    if (is_list) {
      PyList_SetItem(items.get(), i, item);
    } else {
      PyTuple_SetItem(items.get(), i, item);
    }
  }
  return items;
}

Ref Execution::Result(const Word** word) {
  const auto kind = static_cast<Value>(*(*word)++);
  switch (kind) {
    case Value::kNone:
      return Ref::Borrow(Py_None);
    case Value::kArray: {
      PyObject* object = ObjectOf(static_cast<int32_t>(*(*word)++));
      return object != nullptr ? Finish(object) : Ref();
    }
    case Value::kElement: {
      PyObject* sequence = call_.args_[*(*word)++];
      return Ref(PySequence_GetItem(sequence, static_cast<Py_ssize_t>(*(*word)++)));
    }
    case Value::kTuple:
    case Value::kList:
      return Items(word, kind == Value::kList);
    case Value::kDict: {
      const Word count = *(*word)++;
      Ref dict(PyDict_New());
      for (Word i = 0; dict && i < count; ++i) {
        PyObject* key = program_.Text(static_cast<int32_t>(*(*word)++));
        const Ref item = Result(word);
        if (!item || PyDict_SetItem(dict.get(), key, item.get()) < 0) return Ref();
      }
      return dict;
    }
    case Value::kCalled: {
      PyObject* callable = PyTuple_GetItem(program_.constants, *(*word)++);
      const Ref items = Items(word, false);
      return items ? Ref(PyObject_Call(callable, items.get(), nullptr)) : Ref();
    }
    default: {
      Ref made;
      PyObject* object = Simple(kind, static_cast<int32_t>(*(*word)++), &made);
      return made ? std::move(made) : Ref::Borrow(object);
    }
  }
}

PyObject* Execution::Run() {
  if (!is_checked_) {
    if (!CheckEffects()) return nullptr;
    Remember();
  }
  const std::vector<Effect>& effects = program_.blocks[static_cast<size_t>(leaf_)].effects;
  const Effect* const end = effects.data() + effects.size();
  for (const Effect* effect = effects.data(); effect != end;) {
    if (effect->code == EffectCode::kLaunch) {
      Failure failure;
      effect = Enqueue(effect, end, &failure);
      if (CULAUNCH_UNLIKELY(failure.effect != nullptr)) return RaiseFailure(failure), nullptr;
      continue;
    }
    bool is_done = true;
    switch (effect->code) {
      case EffectCode::kAllocate:
        is_done = Allocate(*effect);
        if (!is_done) PrefixError(Text(*effect));
        if (is_done && effect->zeros) {
          const ArrayValue& value = call_.arrays_[static_cast<size_t>(effect->array)];
          is_done = Zero(*effect, value.data, 0, value.bytes);
        }
        break;
      case EffectCode::kView:
        MakeView(*effect);
        break;
      case EffectCode::kMemset:
        if (!IsSkipped(*effect)) {
          const ArrayValue& value = call_.arrays_[static_cast<size_t>(effect->array)];
          is_done = CheckFill(*effect) && Zero(*effect, value.data, Int(effect->value),
                                               static_cast<size_t>(Int(effect->bytes)));
        }
        break;
      case EffectCode::kConstantArray:
        is_done = ReadConstantArray(*effect);
        break;
      case EffectCode::kCall:
        is_done = IsSkipped(*effect) || Call(*effect);
        break;
      default: {
        const Word* word = effect->result.data();
        return Result(&word).release();
      }
    }
    if (!is_done) return nullptr;
    ++effect;
  }
  return nullptr;
}

// Fill memory, without the GIL.
bool Execution::Zero(const Effect& effect, char* begin, Word value, size_t bytes) {
  CUresult code;
  {
    const ReleaseGil released;
    code = FillMemory(reinterpret_cast<CUdeviceptr>(begin), value, bytes);
  }
  if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) {
    Guarded<bool>("LaunchError", false, [&] {
      call_.place_.driver->Check(code, "filling " + std::to_string(bytes) + " bytes of memory");
      return true;
    });
    PrefixError(Text(effect));
    return false;
  }
  return true;
}

}  // namespace function
