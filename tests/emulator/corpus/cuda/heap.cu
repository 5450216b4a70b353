// malloc and free in kernels. The tests name lines of this file: mind the numbers.
extern "C" __global__ void give(int** out, unsigned long long bytes)
{
    out[threadIdx.x] = (int*)malloc(bytes);
}

extern "C" __global__ void fill(int** blocks)
{
    if (blocks[threadIdx.x]) blocks[threadIdx.x][0] = 10 + threadIdx.x;
}

extern "C" __global__ void take_back(int** blocks, int* out)
{
    out[threadIdx.x] = blocks[threadIdx.x][0];
    free(blocks[threadIdx.x]);  // line 15
}

extern "C" __global__ void free_twice()
{
    int* p = (int*)malloc(16);
    free(p);  // line 21
    free(p);  // line 22
}

extern "C" __global__ void free_another(char* x, int offset)
{
    char* p = offset < 0 ? x : (char*)malloc(64) + offset;
    free(p);  // line 28
}

extern "C" __global__ void use_after_free(int* out)
{
    int* p = (int*)malloc(64);
    free(p);         // line 34
    out[0] = p[3];  // line 35
}
