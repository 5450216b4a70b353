// Parameter types of extern "C" kernels, whose names do not contain them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "python/python.h"

// kernel_signatures(ptx, source, probe) -> dict: see _core.pyi.
PyObject* KernelSignatures(PyObject* module, PyObject* args);

// A dict of the parameter types of kernels; None for a type that is unknown.
Ref MakeSignatures(const std::vector<std::pair<std::string, std::vector<std::string>>>& signatures);
