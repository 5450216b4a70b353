// culaunch::jit: what <culaunch/jit.h> declares.
#include <culaunch/jit/implementation.h>
