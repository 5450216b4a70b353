// culaunch: load a compiled CUDA kernel and launch it, with only the driver API. You need not link
// anything: the driver is found at first use.
#pragma once

#include "argument.h"
#include "array_argument.h"
#include "driver.h"
#include "embed.h"
#include "error.h"
#include "guard.h"
#include "kernel.h"
#include "launch_config.h"
#include "module.h"
#include "module_options.h"
#include "version.h"

// Throw culaunch::Error unless a driver-API expression gives CUDA_SUCCESS.
#define CULAUNCH_CHECK(expression)                                                                 \
  do {                                                                                             \
    const CUresult culaunch_code = (expression);                                                   \
    if (culaunch_code != CUDA_SUCCESS) {                                                           \
      ::culaunch::Driver::Get().Check(culaunch_code, __FILE__ ":" CULAUNCH_LINE ": " #expression); \
    }                                                                                              \
  } while (false)
#define CULAUNCH_LINE CULAUNCH_TEXT(__LINE__)
#define CULAUNCH_TEXT(x) CULAUNCH_TEXT_(x)
#define CULAUNCH_TEXT_(x) #x
