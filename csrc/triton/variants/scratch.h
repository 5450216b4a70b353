// Scratch memory of a Triton kernel, for one launch.
#pragma once

#include "arguments/convert.h"
#include "python/python.h"

namespace triton {

// Allocated by the user's allocator, or by the framework's if there is one (dispatcher._allocate).
// Otherwise the driver allocates it in stream order, and it is freed there at the end of the scope.
class Scratch {
 public:
  // Nothing is allocated for 0 bytes. is_good() is false with a Python error set on failure.
  Scratch(PyObject* dispatcher, const Conversion& conversion, const char* which, uint64_t bytes,
          uint64_t alignment);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (is_ours_) Free();
  }

  bool is_good() const { return is_good_; }
  void* address() { return &address_; }

 private:
  void Allocate(uint64_t bytes);
  void Free();

  const Conversion& conversion_;
  Ref owner_;
  CUdeviceptr address_ = 0;
  bool is_ours_ = false;
  bool is_good_ = true;
};

}  // namespace triton
