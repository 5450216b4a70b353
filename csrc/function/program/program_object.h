// _core.Program: a decoded program as a Python object.
#pragma once

#include "function/program/program.h"
#include "python/python.h"

namespace function {

struct ProgramObject {
  PyObject_HEAD PyObject* words;  // owned, as constants and texts
  PyObject* constants;
  PyObject* texts;
  Program* program;  // owned
};

extern PyTypeObject* g_program_type;

int AddProgramType(PyObject* module);

// program_format(): the opcodes and the other numbers of the encoding.
PyObject* ProgramFormat(PyObject* self, PyObject* args);

}  // namespace function
