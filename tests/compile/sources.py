"""A source that compiles in no time."""

PLAIN = 'extern "C" __global__ void plain(float* y, double a, unsigned char c) { *y = a + c; }'
