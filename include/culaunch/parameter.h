// culaunch::Parameter: where a kernel's parameter lies.
#pragma once

#include <cstddef>

#include "version.h"

CULAUNCH_NAMESPACE_BEGIN

// In the kernel's parameter block, in bytes.
struct Parameter {
  size_t offset;
  size_t size;
};

CULAUNCH_NAMESPACE_END
