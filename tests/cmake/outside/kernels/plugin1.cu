extern "C" __global__ void plugin(int) {}
