#include <culaunch/culaunch.h>

CULAUNCH_EMBED_CUBIN(kernels);

void one() { CULAUNCH_GET_KERNEL(kernels, "generated")({1, 1}); }
