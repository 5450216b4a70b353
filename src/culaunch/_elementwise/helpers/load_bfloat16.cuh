__device__ float load_bfloat16(__nv_bfloat16 x) { return __int_as_float((int)x.bits << 16); }
