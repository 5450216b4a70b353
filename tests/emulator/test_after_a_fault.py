"""Errors of calls after a kernel failed, and the objects that they keep."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import culaunch as cl
from culaunch import testing

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry bad(.param .u64 to) {
.reg .b64 %a; .reg .b32 %i; ld.param.u64 %a, [to]; mov.u32 %i, %tid.x;
mad.wide.u32 %a, %i, 4, %a; st.global.u32 [%a], %i; ret;
}
.visible .entry good() { ret; }
"""


@pytest.fixture(autouse=True)
def emulator():
    with testing.use_driver("emulator"):
        yield


@pytest.fixture
def module():
    return cl.load(PTX)


def failed(call):
    with pytest.raises(cl.DriverError) as caught:
        call()
    return str(caught.value)


def test_a_failed_call_holds_nothing(module):
    y = cl.empty(1, "u4")
    lengths = set()
    before = sys.getrefcount(y)
    for _ in range(20):
        for call in (lambda: module["bad"][1, 2](y), y.numpy, lambda: module["good"][1, 1]()):
            try:
                call()
            except cl.DriverError as error:
                lengths.add(len(str(error)))
        del call
    assert sys.getrefcount(y) == before
    assert len(lengths) == 4  # the first fault, and what each of the three says later


def test_a_later_call_says_which_kernel_is_to_blame(module):
    y = cl.empty(1, "u4")
    first = failed(lambda: module["bad"][1, 2](y))
    assert "earlier launch" not in first
    assert "culaunch.testing.reset_emulator()" in first
    second = failed(lambda: module["good"][1, 1]())
    assert second.startswith("cannot launch good with")
    assert "an earlier launch is to blame, and this call did nothing: 4-byte write" in second
    assert "\n  kernel bad\n  block (0, 0, 0), thread (1, 0, 0)\n" in second
    assert "culaunch.testing.reset_emulator()" in second
    copied = failed(y.numpy)
    assert "an earlier launch is to blame" in copied
    assert "kernel bad" in copied
    testing.reset_emulator()
    module["good"][1, 1]()


def test_what_fails_after_a_fault_and_what_does_not(module):
    y = cl.empty(1, "u4")
    failed(lambda: module["bad"][1, 2](y))
    for call in (
        lambda: module["good"][1, 1](),
        y.numpy,
        lambda: cl.empty(1, "u4"),
        cl.synchronize,
        cl.Stream,
    ):
        assert "an earlier launch is to blame" in failed(call)
    # No part of these runs on the device.
    assert module["good"].attributes().registers > 0
    assert module["good"].occupancy(block=32) is not None
    assert "good" in cl.load(PTX)


def test_an_error_says_nothing_of_an_earlier_one(module):
    launches = cl.load(PTX)["good"]
    assert "exceeds (1024, 1024, 64)" in failed(lambda: launches[4, 2048]())
    text = failed(lambda: launches[4, 256, 300_000]())
    assert "exceeds" not in text
    assert "300000 bytes of dynamic shared memory" in text


def test_an_unloaded_kernel_says_nothing_of_an_earlier_error(module):
    kernel = module["good"]
    with pytest.raises(cl.CulaunchError):
        kernel.configure(grid=1, block=1, stream=0x3039)
    module.unload()
    with pytest.raises(cl.CulaunchError) as caught:
        kernel[1, 1]()
    assert "unloaded" in str(caught.value)
    assert "0x3039" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "grid", "cluster", "words"),
    [
        (
            "sm_80",
            2,
            2,
            "this device has no clusters (they need sm_90 or newer): leave cluster out",
        ),
        ("sm_90", 32, 32, "the cluster has 32 blocks"),
    ],
)
def test_a_cluster_is_refused_for_the_right_reason(arch, grid, cluster, words):
    script = f"""
import culaunch as cl
try:
    cl.load({PTX!r})["good"].launch(grid={grid}, block=1, cluster={cluster})
except cl.LaunchError as error:
    print(error)
"""
    environment = {**os.environ, "CULAUNCH_DRIVER": "emulator", "CULAUNCH_EMULATOR_ARCH": arch}
    result = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert words in result.stdout
