// Array arguments: their device, their stream, and the owners of their views.
#include "arguments/convert.h"
#include "arguments/protocols/cupy.h"
#include "arguments/torch/tensor.h"

namespace {

// Record the device of an array, and at the first array the stream of its framework.
template <class FindStream>
Mismatch SeeDevice(Conversion& conversion, DLDevice device, FindStream&& find_stream) {
  // Most arrays of a call are on the first one's device.
  if (conversion.has_array && device.device_type == conversion.first.device_type &&
      device.device_id == conversion.first.device_id) {
    return Mismatch::kNone;
  }
  if (!conversion.driver.IsDeviceMemory(device.device_type)) {
    conversion.detail = device.device_type;
    return Mismatch::kMemory;
  }
  // Every device can use pinned and managed memory.
  const bool on_device = device.device_type == conversion.driver.device_types().front();
  // A negative id is not a device. The launch reports it.
  const int ordinal = device.device_id >= 0 ? device.device_id : conversion.driver.device_count();
  if (on_device && conversion.ordinal != ordinal) {
    if (conversion.ordinal >= 0) {
      conversion.detail = device.device_id;
      return Mismatch::kDevice;
    }
    conversion.ordinal = ordinal;
  }
  if (!on_device) return Mismatch::kNone;
  conversion.has_array = true;
  conversion.first = device;
  if (!conversion.stream_known) {
    if (!find_stream()) return Mismatch::kPython;
    conversion.stream_known = true;
  }
  return Mismatch::kNone;
}

}  // namespace

CULAUNCH_APART Mismatch SeeTensor(Conversion& conversion, const TypeEntry& entry, DLDevice device) {
  return SeeDevice(conversion, device, [&] {
    void* stream = nullptr;
    if (device.device_type == culaunch::kDLCPU) return true;  // an emulator's memory
    if (entry.api->current_work_stream(device.device_type, device.device_id, &stream) != 0) {
      return false;
    }
    conversion.stream = static_cast<CUstream>(stream);
    return true;
  });
}

namespace {

Mismatch ReadExchange(Conversion& conversion, const TypeEntry& entry, PyObject* object,
                      ArrayData* array) {
  DLTensor tensor;
  const TensorRead read = ReadTensor(entry.api, object, &tensor);
  if (CULAUNCH_UNLIKELY(read != TensorRead::kDone)) return MismatchOf(read);
  const Mismatch mismatch = SeeTensor(conversion, entry, tensor.device);
  if (CULAUNCH_UNLIKELY(mismatch != Mismatch::kNone)) return mismatch;
  if (CULAUNCH_UNLIKELY(conversion.driver.note_array != nullptr)) {
    conversion.NoteArray(ExtentOf(tensor), object);
  }
  *array = {static_cast<char*>(tensor.data) + tensor.byte_offset, tensor.dtype};
  return Mismatch::kNone;
}

Mismatch ReadCupyArray(Conversion& conversion, const TypeEntry& entry, PyObject* object,
                       ArrayData* array) {
  ArrayView view;
  if (!ReadCupy(object, &view)) return Mismatch::kPython;
  const Mismatch mismatch =
      SeeDevice(conversion, view.device, [&] { return ArrayStream(entry, &conversion.stream); });
  if (mismatch != Mismatch::kNone) return mismatch;
  *array = {view.data, view.dtype};
  return Mismatch::kNone;
}

Mismatch ReadOtherArray(Conversion& conversion, const TypeEntry& entry, PyObject* object,
                        ArrayData* array) {
  if (entry.is_torch) {  // a torch without the exchange API
    const TensorRead read = AskTensor(object);
    if (read != TensorRead::kDone) return MismatchOf(read);
  }
  DLDevice device;
  if (!ReadArrayDevice(object, entry, conversion.driver, &device)) return Mismatch::kPython;
  const Mismatch mismatch =
      SeeDevice(conversion, device, [&] { return ArrayStream(entry, &conversion.stream); });
  if (mismatch != Mismatch::kNone) return mismatch;
  ArrayView view;
  if (!ReadArray(object, entry, conversion.driver, conversion.stream, &view))
    return Mismatch::kPython;
  if (!conversion.owners) conversion.owners = Ref(PyList_New(0));
  if (!conversion.owners || PyList_Append(conversion.owners.get(), view.owner.get()) < 0) {
    return Mismatch::kPython;
  }
  conversion.NoteArray(view.extent, object, view.is_read_only);
  conversion.is_read_only = view.is_read_only;
  *array = {view.data, view.dtype};
  return Mismatch::kNone;
}

}  // namespace

Mismatch ReadArgumentArray(Conversion& conversion, const TypeEntry& entry, PyObject* object,
                           ArrayData* array) {
  if (entry.kind == ArgumentKind::kExchange) return ReadExchange(conversion, entry, object, array);
  if (entry.kind == ArgumentKind::kCupy) return ReadCupyArray(conversion, entry, object, array);
  return ReadOtherArray(conversion, entry, object, array);
}
