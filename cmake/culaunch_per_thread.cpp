// The same for files whose default stream is each thread's own.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include <culaunch/implementation.h>
