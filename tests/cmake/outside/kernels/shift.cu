#include <index.h>

#include "shared.h"

extern "C" __global__ void shift(float* x, int n) {
  int i = index();
  if (i < n) x[i] += SHIFT;
}
