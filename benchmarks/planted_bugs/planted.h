// A kernel is compiled with its bug, or with the line that corrects it.
// A line that ends with "// here" is the one that a report should name.
#ifdef FIXED
#define PLANT(bug, correction) correction
#define FIX(...) __VA_ARGS__
#else
#define PLANT(bug, correction) bug
#define FIX(...)
#endif
#define KERNEL extern "C" __global__ void
