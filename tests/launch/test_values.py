"""Numbers of any size in every place that takes one: an error that names it, and no other."""

import ctypes
import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import culaunch as cl

HUGE = 10**5000  # Python refuses to write it: "Exceeds the limit (4300 digits)"
PLACES = {
    "argument 0 of k": lambda driver, n: driver.bytes_of(n, 4, "int"),
    "argument 0": lambda driver, n: driver.bytes_of(n, 8, "float*"),
    "grid": lambda driver, n: driver.kernel()[n, 1],
    "block": lambda driver, n: driver.kernel()[1, (1, n)],
    "shared_memory": lambda driver, n: driver.kernel()[1, 1, n],
    "stream": lambda driver, n: driver.kernel()[1, 1, 0, n],
    "cluster": lambda driver, n: driver.kernel().configure(grid=1, block=1, cluster=n),
    "priority": lambda driver, n: driver.kernel().configure(grid=1, block=1, priority=n),
    "preferred_cluster": lambda driver, n: driver.kernel().configure(
        grid=1, block=1, cluster=1, preferred_cluster=n
    ),
    "device": lambda driver, n: cl.driver.Device(n),
    "device ": lambda driver, n: cl.empty(1, "f4", device=n),
    "device  ": lambda driver, n: cl.to_device(np.zeros(1), device=n),
    "device   ": lambda driver, n: cl.Stream(n),
    "device    ": lambda driver, n: cl.synchronize(n),
    "device     ": lambda driver, n: driver.kernel().attributes(n),
    "stream ": lambda driver, n: cl.to_device(np.zeros(1), stream=n),
    "priority ": lambda driver, n: cl.Stream(priority=n),
    "shape": lambda driver, n: cl.empty(n, "f4"),
    "shape ": lambda driver, n: cl.empty((1, n), "f4"),
    "box": lambda driver, n: cl.arguments.TensorMap.tiled(np.zeros((4, 4), "f4"), box=(n, 1)),
    "element_strides": lambda driver, n: cl.arguments.TensorMap.tiled(
        np.zeros((4, 4), "f4"), box=(1, 1), element_strides=(1, n)
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", [HUGE, 2**80], ids=["huge", "large"])
def test_a_number_that_is_too_large_is_named(host_driver, place, number):
    with pytest.raises(OverflowError, match=rf"^{place.strip()}.*\(got ") as caught:
        PLACES[place](host_driver, number)
    assert ("bits)" in str(caught.value)) == (number == HUGE)


def test_a_huge_number_is_no_name_of_anything(host_driver):
    with pytest.raises(TypeError, match=r"name must be a str \(got an int of 16610 bits\)"):
        cl.driver.Device(0).attribute(HUGE)
    with pytest.raises(TypeError, match=r"a kernel takes .*got \[an int of 16610 bits\]"):
        host_driver.kernel()[HUGE]


def test_what_has_no_end_takes_no_memory():
    """`itertools.count()` as a size: refused before anything is collected of it."""
    program = """
        import itertools, resource, sys
        import numpy as np
        import culaunch as cl
        from recording import the_recorder

        driver = the_recorder(device_types=(1,))
        kernel = driver.kernel()
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for call in (
            lambda: kernel[itertools.count(1), 1],
            lambda: kernel.configure(grid=1, block=itertools.count(1)),
            lambda: kernel.occupancy(itertools.count(1)),
            lambda: cl.empty(itertools.count(1), "f4"),
            lambda: cl.arguments.TensorMap.tiled(np.zeros((4, 4), "f4"), box=itertools.count(1)),
        ):
            try:
                call()
            except (TypeError, ValueError):
                continue
            sys.exit("taken")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < used + 50_000
        """
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": path, "CULAUNCH_DRIVER": "/recorder"},
        check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", [">f4", ">i8", ">c8", ">u2"])
def test_the_other_byte_order_is_not_copied_to_a_device(host_driver, dtype):
    message = r"byte order of this machine.*array\.astype\(array\.dtype\.newbyteorder"
    with pytest.raises(ValueError, match=message):
        cl.to_device(np.ones(3, dtype))
    with pytest.raises(ValueError, match=message):
        cl.empty(3, dtype)
    array = np.ones(3, dtype)
    native = array.astype(array.dtype.newbyteorder("="))
    assert (cl.to_device(native).numpy() == 1).all()


TAKES_A_STRUCTURE = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .align 4 .b8 p[12]) { ret; }
"""


class Loud:
    __module__ = "loud.module"

    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "shown", "spelled"),
    [
        (3, "int 3", "3"),
        (HUGE, "int of 16610 bits", "an int of 16610 bits"),
        ((1, HUGE), "tuple", "(1, an int of 16610 bits)"),
        ([2.5], "list", "[2.5]"),
        ((), "tuple", "()"),
        ((1,), "tuple", "(1,)"),
        ("x" * 99, "str", "a str"),
        (True, "bool True", "True"),
        (None, "NoneType", "None"),
        (np.zeros(99), "numpy.ndarray", "a numpy.ndarray"),
        (ctypes.c_int(3), "ctypes.c_int", "c_int(3)"),
        (Loud(), "loud.Loud", "a loud.Loud"),
    ],
    ids=range(12),
)
def test_how_values_are_shown(value, shown, spelled):
    with cl.testing.use_driver("emulator"):
        kernel = cl.load(TAKES_A_STRUCTURE)["k"]
        with pytest.raises((TypeError, ValueError)) as caught:
            kernel[1, 1](value)
        caught.match(rf"\(got {re.escape(shown)}( with 4 bytes)?\)")
        with pytest.raises((TypeError, ValueError)) as caught:
            cl.driver.Device(0).attribute(value)
        caught.match(rf"^name must be a str \(got {re.escape(spelled)}\)$|attribute a str;")
