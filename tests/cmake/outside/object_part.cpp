#include <culaunch/culaunch.h>

CULAUNCH_EMBED_CUBIN(object_kernels);

void object_part() { CULAUNCH_GET_KERNEL(object_kernels, "plugin")({1, 1}, 1); }
