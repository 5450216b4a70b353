// NVRTC. Programs without Python and this package share the code in culaunch's headers.
#pragma once

#include "python/python.h"

// open_nvrtc(path, private_directory, warn) -> capsule: see _core.pyi.
PyObject* OpenNvrtc(PyObject* module, PyObject* args);

// nvrtc_place(nvrtc) -> (path, identity), without loading it.
PyObject* NvrtcPlace(PyObject* module, PyObject* nvrtc);

// nvrtc_version(nvrtc) -> (version, architectures): loads it.
PyObject* NvrtcVersion(PyObject* module, PyObject* nvrtc);

// nvrtc_headers(nvrtc) -> (directories, notes).
PyObject* NvrtcHeaders(PyObject* module, PyObject* nvrtc);

// nvrtc_compile(nvrtc, job, arch) -> (kind, data, names, signatures, log).
PyObject* NvrtcCompile(PyObject* module, PyObject* args);

// explain_failure(log, compiler, flags, sources, notes, find) -> CompileError's text.
PyObject* ExplainFailure(PyObject* module, PyObject* args);
