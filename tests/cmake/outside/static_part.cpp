#include <culaunch/culaunch.h>

CULAUNCH_EMBED_CUBIN(static_kernels);

void static_part() { CULAUNCH_GET_KERNEL(static_kernels, "plugin")({1, 1}, 1); }
