// culaunch::culaunch: what <culaunch/culaunch.h> declares.
#include <culaunch/implementation.h>
