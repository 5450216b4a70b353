// culaunch::ModuleOptions: how the driver loads an image.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "error.h"
#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// Options of the driver's compiler, which PTX goes through, and of the library. A value is a number
// or an address, as in the driver's documentation. The memory at an address must outlive the
// module. Options of a log are the module's own, unless they are given.
class ModuleOptions {
 public:
  ModuleOptions& Jit(CUjit_option option, uintptr_t value) {
    return Jit(option, reinterpret_cast<void*>(value));
  }
  ModuleOptions& Jit(CUjit_option option, void* value) {
    jit_.Add(option, value);
    return *this;
  }
  ModuleOptions& Library(CUlibraryOption option, uintptr_t value) {
    return Library(option, reinterpret_cast<void*>(value));
  }
  ModuleOptions& Library(CUlibraryOption option, void* value) {
    library_.Add(option, value);
    return *this;
  }

  bool HasJit(CUjit_option option) const noexcept {
    for (unsigned i = 0; i < jit_.count; ++i) {
      if (jit_.options[i] == option) return true;
    }
    return false;
  }

  CUresult Load(CUlibrary* library, const void* bytes,
                decltype(&::cuLibraryLoadData) load) noexcept {
    return load(library, bytes, jit_.options, jit_.values, jit_.count, library_.options,
                library_.values, library_.count);
  }

 private:
  template <class Option>
  struct List {
    static constexpr unsigned kMost = 48;  // the driver knows fewer

    void Add(Option option, void* value) {
      if (count == kMost) detail::Raise(Error("a module can have at most 48 options of each kind"));
      options[count] = option;
      values[count++] = value;
    }

    unsigned count = 0;
    Option options[kMost];
    void* values[kMost];
  };

  List<CUjit_option> jit_;
  List<CUlibraryOption> library_;
};

CULAUNCH_NAMESPACE_END
