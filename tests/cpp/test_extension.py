"""The extension under a second compiler and within the stable ABI, as its wheels are built.

Its flags must work with more than one compiler and one version of Python.
"""

from __future__ import annotations

import collections
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import culaunch as cl

CSRC = Path(__file__).parents[2] / "csrc"
SOURCES = sorted(CSRC.rglob("*.cpp"))
PYTHON = Path(sysconfig.get_path("include"))
# What Python 3.12 added to the stable ABI, for the headers of Python 3.11.
ADDED_IN_3_12 = """
#include <Python.h>
#if PY_VERSION_HEX < 0x030c0000
#define PY_VECTORCALL_ARGUMENTS_OFFSET ((size_t)1 << (8 * sizeof(size_t) - 1))
#define PyVectorcall_NARGS(n) ((Py_ssize_t)((n) & ~PY_VECTORCALL_ARGUMENTS_OFFSET))
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
extern "C" {
typedef PyObject* (*vectorcallfunc)(PyObject*, PyObject* const*, size_t, PyObject*);
PyObject* PyVectorcall_Call(PyObject*, PyObject*, PyObject*);
PyObject* PyObject_Vectorcall(PyObject*, PyObject* const*, size_t, PyObject*);
PyObject* PyObject_VectorcallMethod(PyObject*, PyObject* const*, size_t, PyObject*);
}
#endif
"""


# Half of the time goes into these, which nearly every source includes.
STANDARD = "#include <Python.h>\n#include <cuda.h>\n" + "".join(
    f"#include <{name}>\n"
    for name in ("algorithm", "atomic", "cmath", "cstring", "functional", "map", "memory", "mutex",
                 "optional", "string", "unordered_map", "utility", "vector")
)  # fmt: skip


@pytest.fixture(scope="session")
def limited_api(tmp_path_factory) -> list[str]:
    """Return the flags that hide what a wheel for several Pythons may not use."""
    if sys.version_info < (3, 11):  # its headers lack too much of what 3.12 has
        return []
    [minor] = re.findall(
        r'wheel\.py-api = "cp3(\d+)"', (CSRC.parent / "pyproject.toml").read_text()
    )
    prelude = tmp_path_factory.mktemp("limited_api") / "prelude.h"
    prelude.write_text(ADDED_IN_3_12)
    return [f"-DPy_LIMITED_API=0x03{int(minor):02x}0000", "-include", str(prelude)]


@pytest.fixture(scope="session")
def command(gxx, cuda_headers, limited_api, tmp_path_factory) -> list[str]:
    """Return what compiles a source; with clang, which reads the standard headers once for all."""
    clang = shutil.which("clang++")
    command = [clang or gxx, "-std=c++17", *limited_api]
    cmake = (CSRC.parent / "CMakeLists.txt").read_text()
    (defined,) = re.findall(r"definitions\(_core PRIVATE ([^)]*)\)", cmake)
    command += [f"-D{one}" for one in defined.split()]
    command += [
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        str(cl.cpp.include_dir()),
    ]
    command += ["-I", str(CSRC), "-isystem", cuda_headers, "-isystem", str(PYTHON)]
    if clang is None:
        return command
    folder = tmp_path_factory.mktemp("precompiled")
    (folder / "all.h").write_text(STANDARD)
    made = folder / "all.pch"
    subprocess.run(
        [*command, "-x", "c++-header", folder / "all.h", "-o", made], check=True, timeout=120
    )
    # The precompiled header contains the prelude.
    command = [one for one in command if one not in limited_api[1:]]
    return [*command, "-include-pch", str(made)]


@pytest.mark.skipif(not (PYTHON / "Python.h").exists(), reason="needs Python.h")
def test_it_compiles_within_the_limited_api_without_a_warning(command, tmp_path):
    # The files of a room together, as a wheel compiles them: a fifth of the time.
    rooms = collections.defaultdict(list)
    for source in SOURCES:
        rooms[source.relative_to(CSRC).parts[0]].append(f'#include "{source}"\n')
    for room, lines in rooms.items():
        (tmp_path / f"{room}.cpp").write_text("".join(lines))
    done = subprocess.run(
        [*command, "-fsyntax-only", *sorted(tmp_path.glob("*.cpp"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_no_format_has_a_length_in_it():
    """A wheel that Python 3.13 built runs on 3.12, which refuses "y#" from its headers."""
    formats = re.compile(r'"[^"\s]*[syz]#[^"\s]*"')
    assert [path.name for path in SOURCES if formats.search(path.read_text())] == []
