// The arrays that a program makes, and those that it closes over.

#include "arguments/allocate.h"
#include "arguments/device_array/device_array.h"
#include "arguments/device_array/exchange.h"
#include "driver/errors.h"
#include "function/execution/execution.h"
#include "function/execution/fresh_memory.h"
#include "function/program/problems.h"
#include "python/upcalls.h"

namespace function {

namespace {

// The state of a view that Python sees: the array that it is a view of, and its own shape.
struct HeldView {
  DLManagedTensorVersioned managed;
  PyObject* owner;
  int64_t room[2 * operands::kMaxDims];
};

void DeleteView(DLManagedTensorVersioned* managed) {
  auto* held = static_cast<HeldView*>(managed->manager_ctx);
  if (Py_IsInitialized() != 0) {
    const HoldGil gil;
    Py_DECREF(held->owner);
  }
  delete held;
}

}  // namespace

Ref TupleOf(const int64_t* numbers, int count) {
  Ref tuple(PyTuple_New(count));
  for (int i = 0; tuple && i < count; ++i) {
    PyTuple_SetItem(tuple.get(), i, PyLong_FromLongLong(numbers[i]));
  }
  return tuple;
}

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
    PyErr_SetString(PyExc_TypeError, "an object that the function closes over is not an array");
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
                 "an array that the function closes over is on device %d of DLPack type %d, but "
                 "its arguments are on device %d of type %d",
                 operand.device.device_id, operand.device.device_type, place.device.device_id,
                 place.device.device_type);
    return false;
  }
  const Extent extent = operands::ExtentOf(operand);
  ArrayValue& value = call_.arrays_[static_cast<size_t>(effect.array)];
  value.data = operand.data;
  value.object = object;
  value.number = operand.number;
  value.base = effect.array;
  value.effect = nullptr;
  value.begin = static_cast<const char*>(extent.begin);
  value.bytes = extent.bytes;
  if (operand.owner) call_.owners_.push_back(std::move(operand.owner));
  if (CULAUNCH_UNLIKELY(place.driver->note_array != nullptr)) ReadStorage(object, value);
  return true;
}

bool Execution::AllocateAsFramework(ArrayValue* value, uint8_t number, int rank,
                                    const int64_t* shape) {
  const CallPlace& place = call_.place_;
  if (place.first == nullptr || place.entry == nullptr) {
    const Ref tuple = TupleOf(shape, rank);
    const DLDataType type = operands::TypeOf(number);
    if (!tuple) return false;
    Ref array =
        CallUp(Upcall::kAllocateArray, "Oiiiii", tuple.get(), int{type.code}, int{type.bits},
               int{type.lanes}, place.device.device_type, place.device.device_id);
    if (!array) return false;
    value->data = static_cast<char*>(ViewOf(array.get()).data);
    value->object = array.release();
    value->is_owned = true;
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
  Ref array = operands::Allocate(own, number, rank, shape, nullptr, &made);
  if (!array) return false;
  value->data = made.data;
  value->object = array.release();
  value->is_owned = true;
  return true;
}

bool Execution::AllocateMemory(ArrayValue* value, uint8_t number, int rank, const int64_t* shape) {
  const CallPlace& place = call_.place_;
  const DLPackExchangeAPI* api =
      place.entry != nullptr && place.entry->kind == ArgumentKind::kExchange ? place.entry->api
                                                                             : nullptr;
  if (api != nullptr && api != DeviceArrayExchange() && api->managed_tensor_allocator != nullptr) {
    const DLDataType type = operands::TypeOf(number);
    return AllocateDense(api, place.device, type, rank, shape, &value->data, &value->allocated);
  }
  return AllocateAsFramework(value, number, rank, shape) && IsAligned(value->data);
}

// Allocate all arrays that Python never sees at once, because each allocation costs about half a
// launch. A driver that checks arrays gets separate allocations, to detect an access past an end.
bool Execution::PlaceScratch(const ReplayStep& step) {
  ArrayValue& value = call_.arrays_[static_cast<size_t>(step.array)];
  if (scratch_ == nullptr) {
    static const uint8_t number = operands::NumberOf({kDLUInt, 8, 1});
    const auto bytes = static_cast<int64_t>(replay_->scratch_bytes());
    if (!AllocateMemory(&value, number, 1, &bytes)) return false;
    scratch_ = value.data;
  }
  value.data = scratch_ + step.offset;
  return true;
}

bool Execution::Allocate(const ReplayStep& step) {
  const ReadyMemory& memory = *step.memory;
  ArrayValue& value = call_.arrays_[static_cast<size_t>(step.array)];
  value.number = step.effect->number;
  value.base = step.array;
  value.effect = step.effect;
  value.bytes = memory.bytes;
  const bool is_shared = step.offset >= 0 && replay_->scratch_bytes() != 0 &&
                         call_.place_.driver->note_array == nullptr;
  if (!(is_shared ? PlaceScratch(step)
                  : AllocateMemory(&value, value.number, memory.rank, memory.shape))) {
    return false;
  }
  value.begin = value.data;
  return true;
}

// Whether all elements of a view lie in the memory of its base.
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

// A view as an array of the framework that owns its base.
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

CULAUNCH_APART void Execution::ReadStorages() {
  for (size_t i = 0; i < program_.argument_arrays; ++i) {
    ReadStorage(call_.arrays_[i].object, call_.arrays_[i]);
  }
}

void Execution::ReadStorage(PyObject* object, const ArrayValue& value) {
  const Storage storage = StorageOf(object, {value.begin, value.bytes});
  if (storage.extent.bytes != 0) storages_.push_back(storage);
}

// Report the arrays that the next launch may touch to the driver.
CULAUNCH_APART void Execution::TellDriver() const {
  const culaunch::Driver& driver = *call_.place_.driver;
  driver.note_array(nullptr, 0, culaunch::kNoteLaunch);
  for (size_t i = 0; i < program_.arrays; ++i) {
    const ArrayValue& value = call_.arrays_[i];
    const bool is_made =
        i < program_.argument_arrays || value.object != nullptr || value.allocated.is_made();
    if (!is_made || value.base != static_cast<int32_t>(i)) continue;
    driver.note_array(value.begin, value.bytes, culaunch::kNoteArray);
  }
  for (const auto& [extent, is_read_only] : storages_) {
    driver.note_array(extent.begin, extent.bytes,
                      is_read_only ? culaunch::kNoteReadOnlyStorage : culaunch::kNoteStorage);
  }
}

}  // namespace function
