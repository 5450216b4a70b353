// The minimum that any file with a launch compiles.
#include <cuda.h>

int Nothing() { return CUDA_SUCCESS; }
