// nvJitLink and nvFatbin. Programs without Python and this package share the code in culaunch's
// headers.
#pragma once

#include "python/python.h"

// set_pip_folders(folders): where to look first for all of these libraries.
PyObject* SetPipFolders(PyObject* module, PyObject* folders);

// open_nvjitlink() -> (capsule, identity).
PyObject* OpenNvJitLink(PyObject* module, PyObject* unused);

// link_images(nvjitlink, inputs, arch, options) -> (data, log): see _core.pyi.
PyObject* LinkImages(PyObject* module, PyObject* args);

// combine_images(parts, identifier) -> bytes: see _core.pyi.
PyObject* CombineImages(PyObject* module, PyObject* args);

// library_place(name) -> (version, path): see _core.pyi.
PyObject* LibraryPlace(PyObject* module, PyObject* name);
