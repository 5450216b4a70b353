// culaunch::CompileOptions: the options of a compile.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../version.h"

CULAUNCH_NAMESPACE_BEGIN

// They mean what the keywords of Python's culaunch.compile mean, and give the same keys.
struct CompileOptions {
  // "sm_90a" (a cubin), "compute_80" (PTX), or several, which give a fatbin. Without any, the
  // architecture of the device in use; PTX on the emulated driver.
  std::vector<std::string> arch;
  std::string std = {};                             // the dialect, such as "c++20"
  std::map<std::string, std::string> defines = {};  // {"N", "4"} is -DN=4
  std::vector<std::string> include_dirs = {};
  bool fast_math = false;
  bool line_info = false;
  bool debug = false;
  int maxrregcount = 0;  // the most registers that a thread may use; 0: the compiler's choice
  bool extra_device_vectorization = false;
  bool device_as_default_execution_space = false;
  bool relocatable = false;                     // an object, for Jit::Link
  bool lto = false;                             // LTO-IR, for Jit::Link
  std::vector<std::string> extra_options = {};  // anything else, as it is
  bool pch = false;       // keep precompiled headers for the life of the process
  std::string name = {};  // the source's name in messages and __FILE__; "kernel.cu" by default
};

CULAUNCH_NAMESPACE_END
