// Half precision, as in the public headers.
#pragma once

#include <culaunch/half.h>

using culaunch::Bfloat16Bits;
using culaunch::Float16Bits;
using culaunch::SingleBits;
