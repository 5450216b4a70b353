// What a kernel of an installed dispatcher does where it cannot be launched natively: Triton
// launches it, so that nobody can tell.
#pragma once

#include "python/python.h"

namespace triton {

// _core.TritonsWay: raised where Triton takes a call over; its text is the reason.
extern PyObject* g_tritons_way;

// Make the Python error that is set one: its text stays.
CULAUNCH_RARE void GoTritonsWay();

int AddTritonsWay(PyObject* module);

}  // namespace triton
