#include "shared.h"
#include <index.h>

extern "C" __global__ void shift(float* x, int n) {
  int i = index();
  if (i < n) x[i] += SHIFT;
}
