"""A ``libcuda.so.1`` that is the driver in use, for C that links the driver."""

from __future__ import annotations

import os

from culaunch._base.compiler_files import write_text
from culaunch._base.data_files import data_text
from culaunch._base.scratch import Scratch
from culaunch._embed import include_dir
from culaunch._inline.cuda_header import cuda_include_dir
from culaunch._inline.toolchain import find_cxx
from culaunch._inline.units import run_compiler

_FILE = "libcuda.so.1"
# Programs that link with it ask for this name, and nothing else does. With the file's own name,
# code that looks for the system's driver in that process (NVRTC, this library itself) would get
# this one.
_SONAME = "libculaunch_c_driver.so"


def build_c_driver(folder: str) -> str:
    """Build it in a folder, which is made; return its path.

    Raises
    ------
    CompileError
        If there is no C++ compiler, or it fails.
    MissingDependencyError
        Without ``cuda.h``.
    """
    folder = os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    output = os.path.join(folder, _FILE)
    with Scratch(folder) as scratch:
        source = os.path.join(scratch, "c_driver.cpp")
        write_text(source, data_text(__name__, "c_driver.cpp"))
        made = os.path.join(scratch, _FILE)
        command = [
            *find_cxx(), "-std=c++17", "-O1", "-shared", "-fPIC", f"-Wl,-soname,{_SONAME}",
            f"-I{include_dir()}", f"-I{cuda_include_dir()}", "-o", made, source, "-ldl",
        ]  # fmt: skip
        run_compiler(command, scratch, {})
        # Whole or not at all: another process may load it at any time.
        os.replace(made, os.path.join(folder, _SONAME))
        link = os.path.join(scratch, "link")
        os.symlink(_SONAME, link)
        os.replace(link, output)
    return output
