// From a Python object to the bytes of a kernel parameter, by the rules of a launch.
#pragma once

#include <culaunch/kernel.h>

#include <atomic>
#include <memory>
#include <vector>

#include "arguments/protocols/arrays.h"
#include "arguments/torch/tensor.h"
#include "arguments/types/type_table.h"
#include "formats/dlpack.h"
#include "python/python.h"

// One parameter of a kernel: its place, and the known facts about its type.
struct ParameterSlot {
  size_t offset = 0;
  size_t size = 0;
  TypeClass type_class = TypeClass::kUnknown;
  // For a pointer: the kernel may write to its elements, so a read-only array is refused.
  bool may_write = false;
  // The element type of a pointer, the type of a floating-point number; bits 0: not known.
  DLDataType type = {0, 0, 0};
  // The entry of the last object's type: most calls pass the same one again.
  std::atomic<const TypeEntry*> last{nullptr};
};

// Why an object cannot be an argument.
enum class Mismatch {
  kNone,
  kPython,       // a Python error is set already
  kUnsupported,  // no rule for objects of this type
  kKind,         // the kind of object does not go with the parameter's type or size
  kSize,         // bytes of the wrong length; detail: their length
  kOverflow,     // a number that does not fit
  kAmbiguous,    // a float for two bytes: float16 or bfloat16
  kElement,      // the array's element type is not the pointer's; detail: its DLPack type
  kMemory,       // the array is not in this driver's memory; detail: its DLPack device type
  kDevice,       // another device than the arrays before; detail: its ordinal
  kReadOnly,     // a read-only array for a pointer to memory that the kernel may write
  kTensor,       // a torch tensor whose memory differs from what it shows
};

// The name of a mismatch in culaunch._launch.messages and culaunch._triton.calls.messages.
const char* MismatchName(Mismatch mismatch);

struct NotedMemory {
  const void* begin;
  size_t bytes;
  culaunch::Note note;
};

// The state of converting the arguments of one call, in order.
struct Conversion {
  explicit Conversion(culaunch::Driver& driver) : driver(driver) {}

  // Report an argument's array to the driver, if the driver asks for arrays. The base array of a
  // view is found through the object.
  void NoteArray(const Extent& extent, PyObject* object = nullptr, bool is_read_only = false) {
    if (CULAUNCH_UNLIKELY(driver.note_array != nullptr)) NoteMemory(extent, object, is_read_only);
  }

  // Report the arrays that the next launch may touch to the driver. Call this right before the
  // launch: reading an argument may run Python, which may launch something else.
  void TellDriver() const {
    if (CULAUNCH_UNLIKELY(driver.note_array != nullptr)) TellOfNoted();
  }

  culaunch::Driver& driver;
  int ordinal = -1;           // the device of the arrays so far, or of a fixed stream; -1: none
  bool has_array = false;     // an array on a device has been seen
  DLDevice first = {0, 0};    // the device of that array
  bool stream_known = false;  // given, or found with the first array
  CUstream stream = nullptr;
  Ref owners;  // a list that keeps the views of slower arrays alive; usually null
  long long detail = 0;
  bool is_read_only = false;  // of the last array of kind kArray
  std::unique_ptr<std::vector<NotedMemory>> noted;
  void NoteMemory(const Extent& extent, PyObject* object, bool is_read_only);
  void TellOfNoted() const;
};

// Where an array's elements begin, and their type; bits 0: not known.
struct ArrayData {
  void* data = nullptr;
  DLDataType dtype = {0, 0, 0};
};

// The mismatch of a tensor that could not be read.
inline Mismatch MismatchOf(TensorRead read) {
  return read == TensorRead::kFailed ? Mismatch::kPython : Mismatch::kTensor;
}

// Record a tensor's device, and at the first tensor its framework's stream.
CULAUNCH_APART Mismatch SeeTensor(Conversion& conversion, const TypeEntry& entry, DLDevice device);

// Read an array whose type's entry is of kind kExchange, kCupy or kArray. Record its device, and at
// the first array the stream.
Mismatch ReadArgumentArray(Conversion& conversion, const TypeEntry& entry, PyObject* object,
                           ArrayData* array);

// Convert the arguments of a call, one for each slot, into the bytes at `block`. pointers[i] points
// to the i-th one. If one cannot be converted, *index is its number.
Mismatch ConvertAll(Conversion& conversion, ParameterSlot* slots, PyObject* const* args,
                    size_t count, unsigned char* block, void** pointers, size_t* index);
