// The version of the header, and the namespace that keeps two versions in one process apart.
#pragma once

#define CULAUNCH_VERSION_MAJOR 0
#define CULAUNCH_VERSION_MINOR 1
#define CULAUNCH_VERSION_PATCH 0

// Hidden visibility: every library that includes culaunch has a copy of its own, and no symbol
// of it can be bound to another library's.
#if defined(_WIN32)
#define CULAUNCH_HIDDEN
#else
#define CULAUNCH_HIDDEN __attribute__((visibility("hidden")))
#endif

// Where the functions are that a launch does not run: checks, words of errors, loading. With 1, the
// default, each file compiles those that it uses. With 0 the header declares them, and one file of
// the program compiles them all: it includes <culaunch/implementation.h>. CMake's
// culaunch::culaunch chooses 0 and brings that file.
#if !defined(CULAUNCH_HEADER_ONLY)
#define CULAUNCH_HEADER_ONLY 1
#endif

// Marks a function that exists once in a program, however many files define it. Define it as empty
// if only one file does: then the compiler may inline such functions when it links.
#if !defined(CULAUNCH_ONCE)
#if defined(_WIN32)
#define CULAUNCH_ONCE
#else
#define CULAUNCH_ONCE __attribute__((weak))
#endif
#endif

// Before the definition of each of these functions, in the headers of impl/.
#if CULAUNCH_HEADER_ONLY
#define CULAUNCH_INLINE inline
#else
#define CULAUNCH_INLINE CULAUNCH_ONCE
#endif

// A function that is not inlined.
#if defined(__GNUC__)
#define CULAUNCH_SEPARATE __attribute__((noinline))
#else
#define CULAUNCH_SEPARATE
#endif

// A launch leaves the branch predictor to the driver's code: the usual way should take no branch.
#if defined(__GNUC__)
#define CULAUNCH_UNLIKELY(condition) __builtin_expect(!!(condition), false)
// For functions of mistakes and descriptions: small and quick to compile, rather than quick.
#define CULAUNCH_COLD __attribute__((cold))
#else
#define CULAUNCH_UNLIKELY(condition) (condition)
#define CULAUNCH_COLD
#endif

#define CULAUNCH_NAME_WITH_VERSION(suffix, major, minor, patch) \
  CULAUNCH_JOINED_NAME(suffix, major, minor, patch)
#define CULAUNCH_JOINED_NAME(suffix, major, minor, patch) v##major##_##minor##_##patch##suffix

// A file whose default stream is each thread's own has another table of driver functions, and so
// names of its own: the two kinds may be linked together.
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define CULAUNCH_INLINE_NAMESPACE                                                         \
  CULAUNCH_NAME_WITH_VERSION(_per_thread, CULAUNCH_VERSION_MAJOR, CULAUNCH_VERSION_MINOR, \
                             CULAUNCH_VERSION_PATCH)
#else
#define CULAUNCH_INLINE_NAMESPACE                                              \
  CULAUNCH_NAME_WITH_VERSION(, CULAUNCH_VERSION_MAJOR, CULAUNCH_VERSION_MINOR, \
                             CULAUNCH_VERSION_PATCH)
#endif

#define CULAUNCH_NAMESPACE_BEGIN       \
  namespace culaunch CULAUNCH_HIDDEN { \
  inline namespace CULAUNCH_INLINE_NAMESPACE {
#define CULAUNCH_NAMESPACE_END \
  }                            \
  }
