// Half precision, as the headers have it.
#pragma once

#include <culaunch/half.h>

using culaunch::Bfloat16Bits;
using culaunch::Float16Bits;
using culaunch::SingleBits;
