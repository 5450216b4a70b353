// The functions that the C++ header declares and that no launch runs: drivers and modules that are
// opened, and explanations of errors. They are compiled once for the extension, for size.
#include <culaunch/impl/arguments.h>
#include <culaunch/impl/driver.h>
#include <culaunch/impl/embed.h>
#include <culaunch/impl/error.h>
#include <culaunch/impl/kernel.h>
#include <culaunch/impl/module.h>
#include <culaunch/impl/tensor_text.h>
