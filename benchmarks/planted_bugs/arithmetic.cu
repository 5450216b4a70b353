// Integer arithmetic without a defined result.
#include "planted.h"

KERNEL division_by_zero(int* y, const int* x)
{
    y[threadIdx.x] = 100 / PLANT(x[threadIdx.x], max(x[threadIdx.x], 1));  // here
}

KERNEL signed_overflow(int* y, int factor)
{
    y[threadIdx.x] = PLANT(y[threadIdx.x], 1) * factor + PLANT(factor, 0);  // here
}

KERNEL overflowed_index(int* y, int width)
{
    PLANT(int, long long) at = (PLANT(int, long long))(threadIdx.x + 1) * width;
    y[at % 64] = 1;  // here
}
