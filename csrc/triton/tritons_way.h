// The fallback of an installed kernel that cannot be launched natively: Triton launches it, without
// a visible difference.
#pragma once

#include "python/python.h"

namespace triton {

// _core.TritonsWay: raised where Triton takes a call over; its text is the reason.
extern PyObject* g_tritons_way;

// Make the Python error that is set one: its text stays.
CULAUNCH_RARE void GoTritonsWay();

int AddTritonsWay(PyObject* module);

}  // namespace triton
