// What culaunch.h only declares: once in a program.
#include <culaunch/implementation.h>
