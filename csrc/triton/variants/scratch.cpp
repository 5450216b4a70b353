#include "triton/variants/scratch.h"

#include <culaunch/guard.h>

#include <string>

#include "driver/errors.h"
#include "python/upcalls.h"

namespace triton {

Scratch::Scratch(PyObject* dispatcher, const Conversion& conversion, const char* which,
                 uint64_t bytes, uint64_t alignment)
    : conversion_(conversion) {
  if (bytes == 0) return;
  owner_ = Ref(PyObject_CallMethod(dispatcher, methods::kAllocate, "sKKNi", which,
                                   static_cast<unsigned long long>(bytes),
                                   static_cast<unsigned long long>(alignment),
                                   PyLong_FromVoidPtr(conversion.stream), conversion.ordinal));
  if (!owner_) {
    is_good_ = false;
  } else if (owner_.get() == Py_None) {
    Allocate(bytes);
  } else {
    const Ref address(PyLong_Check(owner_.get())
                          ? Ref::Borrow(owner_.get()).release()
                          : PyObject_CallMethod(owner_.get(), "data_ptr", nullptr));
    address_ = address ? PyLong_AsUnsignedLongLong(address.get()) : 0;
    is_good_ = PyErr_Occurred() == nullptr;
  }
}

void Scratch::Allocate(uint64_t bytes) {
  culaunch::Driver& driver = conversion_.driver;
  CUresult code;
  {
    const ReleaseGil released;
    const culaunch::DeviceGuard guard(driver, conversion_.ordinal);
    code = guard.code();
    if (code == CUDA_SUCCESS) code = driver.cuMemAllocAsync(&address_, bytes, conversion_.stream);
  }
  is_good_ = is_ours_ = code == CUDA_SUCCESS;
  if (is_good_) return;
  Guarded<bool>(nullptr, false, [&] {
    driver.Check(code, "allocating " + std::to_string(bytes) + " bytes of scratch memory");
    return false;
  });
}

void Scratch::Free() {
  // The launch may have failed, and an emulated driver runs Python.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  {
    culaunch::Driver& driver = conversion_.driver;
    const ReleaseGil released;
    const culaunch::DeviceGuard guard(driver, conversion_.ordinal);
    if (guard.code() == CUDA_SUCCESS) driver.cuMemFreeAsync(address_, conversion_.stream);
  }
  PyErr_Restore(type, value, trace);
}

}  // namespace triton
