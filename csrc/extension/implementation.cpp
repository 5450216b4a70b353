// The functions that the C++ header declares, compiled once for the extension.
#include <culaunch/implementation.h>
