extern "C" __global__ void generated() {}
