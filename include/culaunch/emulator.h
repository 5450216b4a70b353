// The emulated driver is written in Python: start it where this process runs Python.
#pragma once

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace detail {

template <class Function>
Function* FindInProcess(const char* name) {
#if defined(_WIN32)
  return reinterpret_cast<Function*>(GetProcAddress(GetModuleHandleA(nullptr), name));
#else
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
#endif
}

// Have Python's culaunch open the chosen driver, which publishes it. False in a process without
// Python. The functions of Python's C API are found by name: this header needs none of it.
inline bool StartEmulator() {
  auto* is_initialized = FindInProcess<int()>("Py_IsInitialized");
  auto* ensure = FindInProcess<int()>("PyGILState_Ensure");
  auto* release = FindInProcess<void(int)>("PyGILState_Release");
  auto* run = FindInProcess<int(const char*)>("PyRun_SimpleString");
  if (is_initialized == nullptr || ensure == nullptr || release == nullptr || run == nullptr ||
      is_initialized() == 0) {
    return false;
  }
  const int state = ensure();
  run("exec('''try:\n"
      "    import culaunch\n"
      "    culaunch.driver.driver_name()\n"
      "except ImportError:\n"
      "    pass\n"
      "''', {})");
  release(state);
  return true;
}

}  // namespace detail

CULAUNCH_NAMESPACE_END
