// What any file that launches a kernel compiles.
#include <cuda.h>

int Nothing() { return CUDA_SUCCESS; }
