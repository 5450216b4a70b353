#include "arguments/operands.h"

#include <algorithm>

#include "arguments/protocols/cupy.h"
#include "arguments/torch/tensor.h"
#include "driver/driver_in_use.h"
#include "driver/errors.h"
#include "python/upcalls.h"

namespace operands {

namespace {

bool RefuseDims(const std::string& what, int ndim) {
  PyErr_Format(PyExc_ValueError, "%s has %d dimensions, but at most %d are supported", what.c_str(),
               ndim, kMaxDims);
  return false;
}

bool TakeTensor(const DLTensor& tensor, const std::string& what, Operand* operand) {
  if (tensor.ndim > kMaxDims) return RefuseDims(what, tensor.ndim);
  operand->data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  operand->device = tensor.device;
  operand->ndim = tensor.ndim;
  // Copied, because reading the next argument may run Python, which may change this array.
  const auto count = static_cast<size_t>(tensor.ndim);
  std::copy_n(tensor.shape, count, operand->room);
  operand->shape = operand->room;
  if (tensor.strides != nullptr) {
    std::copy_n(tensor.strides, count, operand->room + kMaxDims);
    operand->strides = operand->room + kMaxDims;
  } else {
    operand->SetDense();
  }
  operand->number = NumberOf(tensor.dtype);
  return true;
}

// Shape and strides, in bytes, as Python tuples.
bool TakeTuples(PyObject* shape, PyObject* strides, const std::string& what, Operand* operand) {
  const Py_ssize_t ndim = shape != nullptr && PyTuple_Check(shape) ? PyTuple_Size(shape) : -1;
  if (ndim < 0) {
    PyErr_Format(PyExc_TypeError, "the shape of %s is not a tuple", what.c_str());
    return false;
  }
  if (ndim > kMaxDims) return RefuseDims(what, static_cast<int>(ndim));
  operand->ndim = static_cast<int>(ndim);
  for (Py_ssize_t i = 0; i < ndim; ++i) {
    operand->room[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
  }
  operand->shape = operand->room;
  if (strides == nullptr || !PyTuple_Check(strides)) {
    operand->SetDense();
    return PyErr_Occurred() == nullptr;
  }
  if (operand->number >= kAllTypes) return true;  // refused by the caller, with its type
  const int item = ItemSize(operand->number);
  for (Py_ssize_t i = 0; i < ndim; ++i) {
    const long long bytes = PyLong_AsLongLong(PyTuple_GetItem(strides, i));
    if (bytes % item != 0 && operand->shape[i] > 1 && PyErr_Occurred() == nullptr) {
      PyErr_Format(PyExc_ValueError,
                   "%s has a stride of %lld bytes, which is not a multiple of its element size",
                   what.c_str(), bytes);
    }
    operand->room[kMaxDims + i] = bytes / item;
  }
  operand->strides = operand->room + kMaxDims;
  return PyErr_Occurred() == nullptr;
}

// ml_dtypes' bfloat16 in NumPy arrays is recognized only by its name.
bool IsBfloat16(PyObject* array) {
  const Ref dtype(PyObject_GetAttrString(array, "dtype"));
  const Ref name(dtype ? PyObject_GetAttrString(dtype.get(), "name") : nullptr);
  const bool is = name && PyUnicode_Check(name.get()) &&
                  PyUnicode_CompareWithASCIIString(name.get(), "bfloat16") == 0;
  PyErr_Clear();
  return is;
}

bool SameFramework(const TypeEntry* a, const TypeEntry* b, const Operand& first,
                   const Operand& other) {
  if (a->type == b->type && a->type != nullptr) return true;
  if (a->kind == ArgumentKind::kExchange && b->kind == ArgumentKind::kExchange) {
    return a->api == b->api;
  }
  return ModuleRoot(Py_TYPE(first.object)) == ModuleRoot(Py_TYPE(other.object));
}

// Check an array's device against the first array's.
bool SeePlace(const std::string& what, Place* place, const Operand& operand, DLDevice device) {
  if (place->first != nullptr) {
    const bool is_host = !place->driver->IsDeviceMemory(device.device_type);
    if (is_host || device.device_id != place->device.device_id) {
      PyErr_Format(PyExc_ValueError,
                   "%s is on device %d of DLPack type %d, but the arrays before it are on device "
                   "%d of type %d: copy it there first",
                   what.c_str(), device.device_id, device.device_type, place->device.device_id,
                   place->device.device_type);
      return false;
    }
    if (!SameFramework(place->first->entry, operand.entry, *place->first, operand)) {
      PyErr_Format(PyExc_TypeError,
                   "%s is a %R, but the arrays before it are %R: all arrays of a call must be of "
                   "one framework; convert it, for example with from_dlpack",
                   what.c_str(), reinterpret_cast<PyObject*>(Py_TYPE(operand.object)),
                   reinterpret_cast<PyObject*>(Py_TYPE(place->first->object)));
      return false;
    }
    return true;
  }
  if (place->driver == nullptr || !place->driver->IsDeviceMemory(device.device_type)) {
    place->driver = CurrentDriver();
    if (place->driver == nullptr) return false;
  }
  if (!place->driver->IsDeviceMemory(device.device_type)) {
    const std::string& name = place->driver->name();
    const char* const remedy =
        name == "emulator" ? "copy it to that driver's memory with culaunch.to_device(array)"
                           : "move it to the GPU, or choose the emulator with "
                             "culaunch.driver.set_driver(\"emulator\")";
    PyErr_Format(PyExc_TypeError,
                 "%s is in memory of DLPack type %d, which the driver %s cannot use: %s",
                 what.c_str(), device.device_type, name.c_str(), remedy);
    return false;
  }
  place->device = device;
  place->first = &operand;
  return true;
}

bool Refuse(TensorRead read, const std::string& what, const Operand& operand) {
  if (read == TensorRead::kRefused) RaiseRefused(what.c_str(), operand.object);
  return false;
}

bool ReadExchange(const std::string& what, Place* place, Operand* operand) {
  DLTensor tensor;
  const TensorRead read = ReadTensor(operand->entry->api, operand->object, &tensor);
  if (CULAUNCH_UNLIKELY(read != TensorRead::kDone)) return Refuse(read, what, *operand);
  const bool is_first = place->first == nullptr;
  if (!TakeTensor(tensor, what, operand) || !SeePlace(what, place, *operand, tensor.device)) {
    return false;
  }
  if (!is_first || tensor.device.device_type == culaunch::kDLCPU) return true;
  void* stream = nullptr;
  if (operand->entry->api->current_work_stream(tensor.device.device_type, tensor.device.device_id,
                                               &stream) != 0) {
    return false;
  }
  place->stream = static_cast<CUstream>(stream);
  return true;
}

bool ReadCupyOperand(const std::string& what, Place* place, Operand* operand) {
  ArrayView view;
  if (!ReadCupy(operand->object, &view)) return false;
  const bool is_first = place->first == nullptr;
  operand->data = static_cast<char*>(view.data);
  operand->device = view.device;
  operand->number = NumberOf(view.dtype);
  if (operand->number == kAllTypes && IsBfloat16(operand->object)) operand->number = kBfloat16;
  static PyObject* const shape_name = PyUnicode_InternFromString("shape");
  static PyObject* const strides_name = PyUnicode_InternFromString("strides");
  const Ref shape(PyObject_GetAttr(operand->object, shape_name));
  const Ref strides(shape ? PyObject_GetAttr(operand->object, strides_name) : nullptr);
  if (!strides || !TakeTuples(shape.get(), strides.get(), what, operand) ||
      !SeePlace(what, place, *operand, view.device)) {
    return false;
  }
  return !is_first || ArrayStream(*operand->entry, &place->stream);
}

bool ReadSlowArray(const std::string& what, Place* place, Operand* operand) {
  const TypeEntry& entry = *operand->entry;
  culaunch::Driver* driver = place->driver != nullptr ? place->driver : CurrentDriver();
  if (driver == nullptr) return false;
  if (entry.is_torch) {  // a torch without the exchange API
    const TensorRead read = AskTensor(operand->object);
    if (read != TensorRead::kDone) return Refuse(read, what, *operand);
  }
  if (!ReadArrayDevice(operand->object, entry, *driver, &operand->device)) return false;
  const bool is_first = place->first == nullptr;
  if (!SeePlace(what, place, *operand, operand->device)) return false;
  if (is_first && !ArrayStream(entry, &place->stream)) return false;
  ArrayView view;
  DLTensor tensor = {};
  if (!ReadArray(operand->object, entry, *place->driver, place->stream, &view, &tensor)) {
    return false;
  }
  operand->is_read_only = view.is_read_only;
  bool done;
  if (PyDict_Check(view.owner.get())) {
    operand->data = static_cast<char*>(view.data);
    operand->number = NumberOf(view.dtype);
    if (operand->number == kAllTypes && IsBfloat16(operand->object)) operand->number = kBfloat16;
    done = TakeTuples(PyDict_GetItemString(view.owner.get(), "shape"),
                      PyDict_GetItemString(view.owner.get(), "strides"), what, operand);
  } else {
    done = TakeTensor(tensor, what, operand);
  }
  operand->owner = std::move(view.owner);
  return done;
}

uint8_t WeakNumber(ArgumentKind kind) {
  if (kind == ArgumentKind::kBool) return kWeakBool;
  return kind == ArgumentKind::kInt ? kWeakInt : kWeakFloat;
}

// A GPU reads elements only at multiples of their size. An access elsewhere ends the process's work
// on the device.
bool IsAligned(const std::string& what, const Operand& operand) {
  const auto item = static_cast<uintptr_t>(ItemSize(operand.number));
  const auto address = reinterpret_cast<uintptr_t>(operand.data);
  if (address % item == 0) return true;
  for (int i = 0; i < operand.ndim; ++i) {
    if (operand.shape[i] == 0) return true;
  }
  PyErr_Format(PyExc_ValueError,
               "%s begins at %p, which is not a multiple of the %d bytes of %s: copy it to memory "
               "of its own",
               what.c_str(), operand.data, static_cast<int>(item), NameOf(operand.number));
  return false;
}

}  // namespace

ReadResult ReadOperand(PyObject* object, const std::string& what, Place* place, Operand* operand) {
  operand->object = object;
  operand->is_array = false;
  operand->is_read_only = false;
  operand->ndim = 0;
  if (PyComplex_CheckExact(object)) {
    operand->number = kWeakComplex;
    return ReadResult::kDone;
  }
  if (operand->entry == nullptr || operand->entry->type != Py_TYPE(object)) {
    operand->entry = LookUpObject(object, &operand->scratch);
    if (operand->entry == nullptr) return ReadResult::kFailed;
  }
  bool done = false;
  switch (operand->entry->kind) {
    case ArgumentKind::kBool:
    case ArgumentKind::kInt:
    case ArgumentKind::kFloat:
      operand->number = WeakNumber(operand->entry->kind);
      return ReadResult::kDone;
    case ArgumentKind::kScalar: {
      const uint8_t number = NumberOf(operand->entry->scalar_type);
      if (number >= kTypes) return ReadResult::kUnknownType;
      operand->number = static_cast<uint8_t>(kFirstScalar + number);
      return ReadResult::kDone;
    }
    case ArgumentKind::kExchange:
      done = ReadExchange(what, place, operand);
      break;
    case ArgumentKind::kCupy:
      done = ReadCupyOperand(what, place, operand);
      break;
    case ArgumentKind::kArray:
      done = ReadSlowArray(what, place, operand);
      break;
    default:
      if (!operand->entry->is_masked) return ReadResult::kUnknownType;
      PyErr_Format(PyExc_TypeError,
                   "%s is a masked NumPy array, but a kernel does not see the mask: pass x.data "
                   "and x.mask, or x.filled(value)",
                   what.c_str());
  }
  if (!done) return ReadResult::kFailed;
  operand->is_array = true;
  if (operand->entry->is_torch && place->checks_gradient &&
      MayRequireGrad(operand->entry->api, object)) {
    const int is_followed = MayBeFollowed(object);
    if (is_followed < 0 || (is_followed == 1 && !CheckGradient(what.c_str(), object))) {
      return ReadResult::kFailed;
    }
  }
  if (operand->number >= place->types) {
    const Ref dtype(PyObject_GetAttrString(object, "dtype"));
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s has elements of a type that is not supported (%R)",
                 what.c_str(), dtype ? dtype.get() : Py_None);
    return ReadResult::kFailed;
  }
  return IsAligned(what, *operand) ? ReadResult::kDone : ReadResult::kFailed;
}
}  // namespace operands
