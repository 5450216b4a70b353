// malloc and free in kernels.
#include "planted.h"

KERNEL double_free()
{
    int* p = (int*)malloc(64);
    p[0] = 1;
    free(p);
    PLANT(free(p), );  // here
}

KERNEL use_after_free(int* y)
{
    volatile int* p = (volatile int*)malloc(64);
    p[3] = 1;
    PLANT(free((int*)p), );
    y[0] = p[3];  // here
    FIX(free((int*)p);)
}

KERNEL heap_past_the_end(int* y, int last)
{
    int* p = (int*)malloc(64);
    for (int i = 0; i PLANT(<=, <) last; ++i) p[i] = i;  // here
    y[0] = p[3];
    free(p);
}

KERNEL leak(int* y)
{
    int* p = (int*)malloc(64);  // here
    p[threadIdx.x % 16] = threadIdx.x;
    y[threadIdx.x] = p[threadIdx.x % 16];
    FIX(free(p);)
}
