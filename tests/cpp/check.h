// What the C++ tests share: checks that name their line, and the fake driver's log.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "culaunch/culaunch.h"

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::fprintf(stderr, "the record is:\n%s", Record().c_str());        \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

// The expression throws culaunch::Error of that kind, with that text in it.
#define CHECK_THROWS(expression, expected_kind, text)             \
  do {                                                            \
    bool thrown = false;                                          \
    try {                                                         \
      (void)(expression);                                         \
    } catch (const culaunch::Error& error) {                      \
      thrown = true;                                              \
      if (std::strstr(error.what(), text) == nullptr) {           \
        std::fprintf(stderr, "the error is: %s\n", error.what()); \
        CHECK(false && "the error has the text " text);           \
      }                                                           \
      CHECK(error.kind() == culaunch::ErrorKind::expected_kind);  \
    }                                                             \
    CHECK(thrown);                                                \
  } while (false)

inline void* Recorder(const char* function) {
  static void* library = dlopen(std::getenv("CULAUNCH_DRIVER"), RTLD_NOW);
  void* found = library != nullptr ? dlsym(library, function) : nullptr;
  if (found == nullptr) {
    std::fprintf(stderr, "CULAUNCH_DRIVER must be the fake driver\n");
    std::exit(1);
  }
  return found;
}

inline std::string Record() {
  return reinterpret_cast<const char* (*)()>(Recorder("fake_driver_log"))();
}

inline void ClearRecord() { reinterpret_cast<void (*)()>(Recorder("fake_driver_clear"))(); }

inline void FailNext(const char* function, CUresult code) {
  reinterpret_cast<void (*)(const char*, int)>(Recorder("fake_driver_fail"))(function, code);
}

// How often a function of the driver was called since ClearRecord; all of them if it is null.
inline uint64_t CallsOf(const char* function) {
  return reinterpret_cast<uint64_t (*)(const char*)>(Recorder("fake_driver_calls"))(function);
}

inline bool Recorded(const std::string& text) { return Record().find(text) != std::string::npos; }

inline int CountRecorded(const std::string& text) {
  int count = 0;
  const std::string record = Record();
  for (size_t at = 0; (at = record.find(text, at)) != std::string::npos; at += text.size()) ++count;
  return count;
}

// Two kernels, as PTX.
inline const std::string& Ptx() {
  static const std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry scale(.param .u64 scale_param_0, .param .u64 scale_param_1,\n"
      "  .param .f32 scale_param_2, .param .u32 scale_param_3)\n{ ret; }\n"
      ".visible .entry empty()\n{ ret; }\n"
      ".visible .entry with_struct(.param .u8 p0, .param .align 8 .b8 p1[24], .param .f64 p2)\n"
      "{ ret; }\n";
  return text;
}
