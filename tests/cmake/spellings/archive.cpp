#include <culaunch/culaunch.h>

CULAUNCH_EMBED_CUBIN(given);

void given() { CULAUNCH_GET_KERNEL(given, "given")({1, 1}); }
