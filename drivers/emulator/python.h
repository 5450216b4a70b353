// Python in this process: found or started, without its headers, so one library serves every
// version.
#pragma once

namespace emulator {

// Whether Python runs, and the functions in Python may be called.
bool IsPythonAlive();

// Make sure that Python runs and that culaunch has written the address of its function that finds
// driver functions to `find`. False after a message on stderr. Any thread may call it, with or
// without the GIL.
bool StartPython(void** find);

// Keep this thread's Python state until the thread ends. Python's thread-local values, such as the
// stack of contexts, would otherwise end with each call.
void AttachThread();

// An exception: PyErr_Fetch's three objects.
struct Exception {
  void *type, *value, *traceback;
};

// Take the exception that is pending in this thread; false if there is none. A destructor calls the
// driver while one is. Python's own code must not run then.
bool TakeException(Exception* taken);

// Make an exception pending again.
void RaiseAgain(const Exception& taken);

}  // namespace emulator
