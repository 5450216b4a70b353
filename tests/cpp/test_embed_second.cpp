// A second object with an image of the same name: see test_embed.cpp.
#include <string>
#include <vector>

#include "culaunch/culaunch.h"

CULAUNCH_EMBED_CUBIN(kernels);
CULAUNCH_EMBED_CUBIN(shared);

std::vector<std::string> KernelsOfSecond() { return CULAUNCH_GET_MODULE(kernels).KernelNames(); }
const culaunch::Module& SharedOfSecond() { return CULAUNCH_GET_MODULE(shared); }
