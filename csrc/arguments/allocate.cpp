#include "arguments/allocate.h"

#include <cstring>

#include "arguments/device_array/exchange.h"
#include "arguments/torch/allocated.h"
#include "python/upcalls.h"

namespace operands {

Ref Allocate(const Place& place, uint8_t number, int ndim, const int64_t* shape, const int* order,
             Operand* operand) {
  const TypeEntry& entry = *place.first->entry;
  Place own = place;
  own.first = nullptr;
  if (entry.kind == ArgumentKind::kExchange && order == nullptr &&
      entry.api != DeviceArrayExchange() && entry.api->managed_tensor_allocator != nullptr) {
    const DLTensor like = {
        nullptr, place.device, ndim, TypeOf(number), const_cast<int64_t*>(shape), nullptr, 0};
    Allocated allocated;
    operand->data = ::Allocate(entry.api, like, &allocated);
    if (!allocated.is_made()) return Ref();
    operand->device = place.device;
    operand->number = number;
    operand->is_array = true;
    operand->ndim = ndim;
    std::memcpy(operand->room, shape, static_cast<size_t>(ndim) * sizeof *shape);
    operand->shape = operand->room;
    operand->SetDense();
    operand->object = TakeObject(entry.api, &allocated);
    return Ref(operand->object);
  }
  const Ref sizes(PyTuple_New(ndim));
  const Ref dims(PyTuple_New(ndim));
  if (!sizes || !dims) return Ref();
  for (int i = 0; i < ndim; ++i) {
    PyTuple_SetItem(sizes.get(), i, PyLong_FromLongLong(shape[i]));
    PyTuple_SetItem(dims.get(), i, PyLong_FromLong(order != nullptr ? order[i] : i));
  }
  Ref array = CallUp(Upcall::kAllocateLike, "OOOsi", place.first->object, sizes.get(), dims.get(),
                     NameOf(number), place.device.device_id);
  if (!array) return array;
  const ReadResult result = ReadOperand(array.get(), "the output", &own, operand);
  if (result == ReadResult::kDone && operand->is_array) return array;
  if (result != ReadResult::kFailed) PyErr_SetString(PyExc_RuntimeError, "no array was allocated");
  return Ref();
}

}  // namespace operands
