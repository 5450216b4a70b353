"""Rows that no block can hold: a cluster of blocks shares one, on devices that have clusters."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import numpy as np
import culaunch as cl
from culaunch import elementwise as ew
from culaunch._elementwise.reductions import call

chosen = []
real = call.choose


def choose(layout, sizes, registers, count, clusters, **options):
    # A device with one multiprocessor has many rows soon.
    chosen.append(real(layout, sizes, registers, 1, clusters, **options).regime)
    return real(layout, sizes, registers, 1, clusters, **options)


call.choose = choose


@ew.fuse
def softmax(x):
    e = ew.exp(x - ew.max(x, axis=-1, keepdims=True))
    return e / ew.sum(e, axis=-1, keepdims=True)


@ew.fuse
def moments(x, weight):
    apart = x - ew.mean(x, axis=-1, keepdims=True)
    return apart * weight, ew.argmax(x, axis=-1), ew.mean(apart * apart, axis=-1)


@ew.fuse
def centered(x):  # the last of three kernels has no reduction
    return x - ew.mean(x, axis=0) - ew.mean(x, axis=1, keepdims=True)


random = np.random.default_rng(0)
for dtype, size, cluster, tolerance in CASES:
    x = random.standard_normal((3, size)).astype(dtype)
    weight = random.standard_normal(size).astype(dtype)
    chosen.clear()
    y = softmax(x)
    assert [one.cluster for one in chosen] == [cluster], chosen
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(-1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(-1, keepdims=True), rtol=tolerance, atol=1e-7)
    np.testing.assert_array_equal(softmax(x), y)
    apart, first, variance = moments(x, weight)
    wanted = (wide - wide.mean(-1, keepdims=True)) * weight
    np.testing.assert_allclose(apart, wanted, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(first, x.argmax(-1))
    np.testing.assert_allclose(variance, wide.var(-1), rtol=tolerance)
    wanted = wide - wide.mean(0) - wide.mean(1, keepdims=True)
    np.testing.assert_allclose(centered(x), wanted, rtol=tolerance, atol=tolerance)
    again = x.copy()
    np.testing.assert_array_equal(softmax(again, out=again), y)
print(*cl.driver.Device(0).arch)
"""


def run(arch, cases):
    environment = os.environ | {
        "CULAUNCH_DRIVER": "emulator",
        "CULAUNCH_EMULATOR_ARCH": arch,
        "CULAUNCH_EMULATOR_OPTIONS": "check_races",
    }
    code = f"CASES = {cases!r}\n{CODE}"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_cluster_of_blocks_shares_a_row():
    cases = [
        ("float32", 16400, 2, 1e-4),
        ("float32", 40000, 4, 1e-4),
        ("float32", 40001, 8, 1e-4),
        ("float16", 20000, 1, 2e-2),
        ("float16", 70000, 1, 2e-2),
        ("float64", 9000, 2, 1e-9),
    ]
    assert run("sm_90", cases).split() == list("sm_90")


def test_a_device_without_clusters_reads_the_row_again():
    assert run("sm_80", [("float32", 40000, 1, 1e-4)]).split() == list("sm_80")
