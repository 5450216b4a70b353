"""Programs of JAX in files, in other processes, and on several devices."""

from __future__ import annotations

import contextlib
import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

import culaunch as cl
from culaunch._jax.texts import call_text, resolve

pytestmark = pytest.mark.needs("jax")

jax = pytest.importorskip("jax")
with contextlib.suppress(ImportError):  # jax imports it itself in newer versions
    importlib.import_module("jax.export")
jnp = jax.numpy


def test_an_exported_program(scale, x):
    safe = jax.export.DisabledSafetyCheck.custom_call(scale.jax.target)
    program = jax.jit(lambda x: scale.jax(x, 2.0))
    with pytest.raises(ValueError, match="culaunch_function"):
        jax.export.export(program)(x)
    exported = jax.export.export(program, disabled_checks=[safe])(x)
    assert exported.call(x).tolist() == (x * 2).tolist()
    assert "culaunch_function" in exported.mlir_module()
    both = jax.export.export(program, disabled_checks=[safe], platforms=("cpu", "cuda"))(x)
    assert both.call(x).tolist() == (x * 2).tolist()


def test_a_donated_array_of_an_exported_program(bump, x):
    safe = jax.export.DisabledSafetyCheck.custom_call(bump.jax.target)
    program = jax.jit(lambda x: bump.jax(x, 2.0), donate_argnums=0)
    exported = jax.export.export(program, disabled_checks=[safe])(x)
    assert jax.jit(exported.call)(x).tolist() == [2, 3, 4, 5, 6]


EXPORTER = """
import sys
import jax, jax.export, jax.numpy as jnp
import culaunch as cl
cl.driver.set_driver("emulator")
sys.path.insert(0, sys.argv[1])
import scaling
file = sys.argv[1] + "/program"
x = jnp.arange(4.0)
if sys.argv[2] == "write":
    safe = jax.export.DisabledSafetyCheck.custom_call(scaling.scale.jax.target)
    program = jax.jit(lambda x: scaling.scale.jax(x, 2.0))
    exported = jax.export.export(program, disabled_checks=[safe])
    open(file, "wb").write(exported(x).serialize(vjp_order=1))
elif sys.argv[2] == "read":
    scaling.scale.jax
    exported = jax.export.deserialize(open(file, "rb").read())
    print(exported.call(x).tolist())
    print(jax.grad(lambda x: exported.call(x).sum())(x).tolist())
else:
    mesh = jax.sharding.Mesh(jax.devices(), "i")
    spec = jax.sharding.PartitionSpec("i")
    sharded = jax.shard_map(lambda x: scaling.scale.jax(x, 3.0), mesh=mesh, in_specs=spec,
                            out_specs=spec, check_vma=False)
    print(len(mesh.devices), jax.jit(sharded)(x).tolist())
    print(jax.jit(jax.grad(lambda x: sharded(x).sum()))(x).tolist())
    parts = jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))
    print(jax.jit(lambda x: scaling.scale.jax(x, 3.0))(parts).tolist())
    print(scaling.scale.jax(parts, 3.0).tolist())
"""


MODULE = """
import culaunch as cl
kernels = cl.load({path!r})

@cl.function
def scale(x, factor: float):
    y = cl.empty_like(x)
    kernels["scale<float>"][1, 64](y, x, factor, x.size)
    return y

@scale.backward
def gradient(grad, factor):
    return scale(grad, factor)
"""


@pytest.fixture
def run_steps(tmp_path, source):
    """Run steps of EXPORTER, each in a process; return what the last one prints."""
    image = cl.compile(source, arch="compute_80", names=["scale<float>"])
    (tmp_path / "image.ptx").write_bytes(image.data)
    (tmp_path / "scaling.py").write_text(MODULE.format(path=str(tmp_path / "image.ptx")))
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}

    def run(*steps):
        for step in steps:
            done = subprocess.run(
                [sys.executable, "-c", EXPORTER, str(tmp_path), step],
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
                env={**os.environ, **flags},
            )
            assert done.returncode == 0, done.stderr
        return done.stdout.strip().splitlines()

    return run


@pytest.mark.slow
@pytest.mark.needs("flatbuffers")
def test_a_program_of_another_process(run_steps):
    assert run_steps("write", "read") == ["[0.0, 2.0, 4.0, 6.0]", "[2.0, 2.0, 2.0, 2.0]"]


@pytest.mark.slow
def test_shards(run_steps):
    """By shard_map, its gradient, what is written; and by jit of an array in parts."""
    tripled, threes = "[0.0, 3.0, 6.0, 9.0]", "[3.0, 3.0, 3.0, 3.0]"
    assert run_steps("shards") == [f"2 {tripled}", threes, tripled, tripled]


@pytest.mark.slow
def test_the_end_while_a_call_runs(tmp_path):
    """Python ends a thread that asks for it then, and XLA waited for ever for one of its own."""
    source = """
    extern "C" __global__ void wait(float* y, const float* x, int n) {
      float sum = 0;
      for (int i = 0; i < x[0]; ++i) sum += x[i % n];
      y[0] = sum;
      if (x[0] > 2) printf("long call done\\n");
    }"""
    image = tmp_path / "image.ptx"
    image.write_bytes(cl.compile(source, arch="compute_80").data)
    program = (
        "import sys, jax, jax.numpy as jnp, culaunch as cl\n"
        "cl.driver.set_driver('emulator')\n"
        "wait = cl.load(sys.argv[1])['wait']\n"
        "@cl.function(mutates=())\n"
        "def f(x):\n"
        "    y = cl.empty_like(x)\n"
        "    wait[1, 1](y, x, x.size)\n"
        "    return y\n"
        "mesh = jax.sharding.Mesh(jax.devices(), 'i')\n"
        "spec = jax.sharding.PartitionSpec('i')\n"
        "each = jax.jit(jax.shard_map(f.jax, mesh=mesh, in_specs=spec, out_specs=spec, "
        "check_vma=False))\n"
        "result = each(jnp.array([2.0, 50000.0]))\n"
        "print(result.addressable_shards[0].data[0], flush=True)\n"
    )
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(image)], capture_output=True, text=True, timeout=120,
        check=False, env={**os.environ, **flags},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["4.0", "long call done"]


def test_a_text_of_another_process():
    text = '{"function":"%s","values":[],"arrays":[],"writes":[]}'
    with pytest.raises(RuntimeError, match="import the module nowhere first"):
        resolve(text % "nowhere:scale")
    with pytest.raises(RuntimeError, match="define the function at the top level of a module"):
        resolve(text % "#123456789")


def test_names_of_functions_in_programs(scale, tmp_path):
    def named(function):
        return call_text(function, (None, 2.0), (0, -1), ())

    assert '"function":"#' in named(scale)  # it is inside another function
    scale(np.ones(3, np.float32), 2.0)
    cl.ship.save([scale], tmp_path / "scale.culib")
    assert '"function":"#' in named(cl.ship.load_library(tmp_path / "scale.culib").scale)
