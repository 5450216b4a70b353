extern "C" __global__ void plugin(long long) {}
