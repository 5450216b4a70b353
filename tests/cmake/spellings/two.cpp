#include <culaunch/culaunch.h>

CULAUNCH_EMBED_CUBIN(kernels);

void two() { CULAUNCH_GET_KERNEL(kernels, "generated")({1, 1}); }
