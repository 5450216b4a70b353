"""Functions in programs of JAX: XLA's CPU client calls them, on the emulator."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import subprocess
import sys
import threading
from collections import namedtuple
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import culaunch as cl
import culaunch.elementwise as ew

pytestmark = pytest.mark.needs("jax")

jax = pytest.importorskip("jax")
with contextlib.suppress(ImportError):  # jax imports it itself in newer versions
    importlib.import_module("jax.export")
jnp = jax.numpy

SOURCE = """
template <class T> __global__ void scale(T* y, const T* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)((float)x[i] * a);
}
__global__ void add(float* y, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += value;
}
"""
Pair = namedtuple("Pair", "first second")


@pytest.fixture(scope="module")
def kernels():
    before = os.environ.get("CULAUNCH_DRIVER")
    cl.set_driver("emulator")
    names = [f"scale<{kind}>" for kind in ("float", "double", "int")]
    yield cl.load(cl.compile(SOURCE, arch="compute_80", names=[*names, "add"]))
    if before is None:
        os.environ.pop("CULAUNCH_DRIVER", None)
    else:
        cl.set_driver(before)


@pytest.fixture(autouse=True)
def on_emulator(emulated):
    """Every test here runs on the emulator."""


@pytest.fixture
def scale(kernels):
    @cl.function
    def scale(x, factor: float):
        cl.check(x.ndim < 3, "x must have one or two dimensions")
        y = cl.empty_like(x)
        n = x.size
        launch = kernels[f"scale<{x.dtype}>"][cl.ceildiv(max(n, 1), 64), 64]
        launch(y, x, factor, n)
        return y

    return scale


@pytest.fixture
def x():
    return jnp.arange(5, dtype=jnp.float32)


def test_a_program_calls_a_function(scale, x):
    program = jax.jit(lambda x: scale.jax(x + 1, 3.0) * 2)
    assert program(x).tolist() == [6, 12, 18, 24, 30]
    assert program(x + 1).tolist() == [12, 18, 24, 30, 36]
    assert program(jnp.ones((2, 3))).tolist() == [[12] * 3] * 2


def test_a_call_at_once(scale, x):
    assert scale.jax(x, 2.0).tolist() == [0, 2, 4, 6, 8]
    assert scale.jax(factor=2.0, x=np.ones(3, np.float32)).tolist() == [2, 2, 2]
    assert scale.jax(x.astype(jnp.int32), 3.0).dtype == jnp.int32
    assert scale.jax(jnp.zeros((0,)), 2.0).shape == (0,)


def test_an_operator_says_what_it_is(scale):
    operator = cl.jax_op(scale)
    assert repr(operator) == "<culaunch.JaxOperator scale(x, factor: float)>"
    assert isinstance(scale.jax, cl.JaxOperator)
    assert operator.__name__ == "scale"


def test_shapes_alone(scale, x):
    found = jax.eval_shape(lambda x: scale.jax(x, 2.0), jax.ShapeDtypeStruct((7, 2), "float32"))
    assert (found.shape, found.dtype) == ((7, 2), "float32")


def test_results_of_every_form(kernels, x):
    @cl.function
    def several(x, form: str):
        first, scratch, second = cl.empty_like(x), cl.empty_like(x), cl.empty_like(x)
        run = kernels["scale<float>"][1, 64]
        run(first, x, 2.0, x.size)
        run(scratch, first, 2.0, x.size)
        run(second, scratch, 2.0, x.size)
        if form == "dict":
            return {"second": second, "first": first, "n": x.size, "none": None}
        if form == "list":
            return [second, [first, 1.5], x]
        if form == "pair":
            return Pair(second, first)
        if form == "view":
            return scratch.view(-1, 1), second[1:3]
        return second, first, second

    twice, eightfold = (x * 2).tolist(), (x * 8).tolist()
    call = partial(jax.jit, static_argnums=1)(several.jax)
    found = several.jax(x, "dict")
    assert (found["second"].tolist(), found["first"].tolist()) == (eightfold, twice)
    assert (found["n"], found["none"], list(found)) == (5, None, ["second", "first", "n", "none"])
    second, (first, number), same = several.jax(x, "list")
    assert (second.tolist(), first.tolist(), number) == (eightfold, twice, 1.5)
    assert same is x
    pair = call(x, "pair")
    assert (pair.second.tolist(), pair.first.tolist()) == (twice, eightfold)
    column, part = call(x, "view")
    assert column.tolist() == [[one] for one in (x * 4).tolist()]
    assert part.tolist() == eightfold[1:3]
    assert [one.tolist() for one in call(x, "tuple")] == [eightfold, twice, eightfold]


def test_what_is_written_is_returned(kernels, x):
    @cl.function
    def bump(cache, value: float):
        kernels["add"][1, 64](cache, value, cache.size)

    @cl.function
    def append(x, cache, other):
        kernels["add"][1, 64](cache, 1.0, cache.size)
        kernels["add"][1, 64](other, 2.0, other.size)
        y = cl.empty_like(x)
        kernels["scale<float>"][1, 64](y, x, 2.0, x.size)
        return y, other

    assert bump.jax(x, 1.0).tolist() == [1, 2, 3, 4, 5]
    assert jax.jit(lambda x: (x, bump.jax(x, 2.0), x))(x)[1].tolist() == [2, 3, 4, 5, 6]
    assert x.tolist() == [0, 1, 2, 3, 4]
    found = jax.jit(append.jax)(x, x, jnp.zeros(2))
    assert (found.result[0].tolist(), found.result[1].tolist()) == ([0, 2, 4, 6, 8], [2, 2])
    assert found.cache.tolist() == [1, 2, 3, 4, 5]
    assert type(found).__name__ == "append_results"


def test_a_donated_array_is_written_in_place(kernels):
    @cl.function
    def bump(cache):
        kernels["add"][1, 64](cache, 1.0, cache.size)
        return cache

    cache = jnp.zeros(64)
    before = cache.unsafe_buffer_pointer()
    after = jax.jit(bump.jax, donate_argnums=0)(cache)
    assert after.tolist() == [1] * 64
    assert after.unsafe_buffer_pointer() == before
    assert cache.is_deleted()


def test_lists_of_arrays_and_names(kernels, x):
    @cl.function
    def total(arrays, *, factor: float = 1.0):
        y = cl.zeros_like(arrays[0])
        for one in arrays:
            part = cl.empty_like(one)
            kernels["scale<float>"][1, 64](part, one, factor, one.size)
            kernels["add"][1, 64](y, part.size * 1.0, y.size)
        return y

    assert total.jax([x, x], factor=2.0).tolist() == [10] * 5
    assert jax.jit(lambda *xs: total.jax(xs))(x, x, x).tolist() == [15] * 5


def test_a_fused_function_in_the_body(x):
    @ew.fuse
    def fused(a, b):
        return a * b + 1

    @cl.function
    def body(a, b):
        return fused(a, b)

    assert jax.jit(body.jax)(x, x).tolist() == [1, 2, 5, 10, 17]


# ---- transformations


@pytest.mark.parametrize("way", ["itself", "itself by name", "jax"])
def test_gradients(scale, x, way):
    """One declaration serves every framework: in it the function is called as it is."""

    @scale.backward
    def gradient(grad, x, factor):
        if way == "jax":
            return scale.jax(grad, factor)
        return scale(grad, factor) if way == "itself" else scale(factor=factor, x=grad)

    gradient_of = jax.grad(lambda x: (scale.jax(x, 3.0) * x).sum())
    assert gradient_of(x).tolist() == (6 * x).tolist()
    assert jax.jit(gradient_of)(x).tolist() == (6 * x).tolist()
    assert jax.jit(jax.vmap(gradient_of))(jnp.ones((2, 3))).tolist() == [[6] * 3] * 2
    # And the gradient of a gradient.
    second = jax.grad(lambda x: (gradient_of(x) * x).sum())
    assert jax.jit(second)(x).tolist() == (12 * x).tolist()


def test_a_function_is_called_where_jax_traces(kernels, scale, x):
    """As its operation: with names, lists, arrays of NumPy beside what is traced."""

    @cl.function
    def total(arrays, *, factor: float = 1.0):
        y = cl.zeros_like(arrays[0])
        for one in arrays:
            kernels["add"][1, 64](y, one.size * factor, y.size)
        return {"total": y, "n": len(arrays)}

    @cl.function
    def bump(cache, other):
        kernels["add"][1, 64](cache, 1.0, cache.size)

    assert jax.jit(lambda x: scale(x + 1, 3.0) * 2)(x).tolist() == [6, 12, 18, 24, 30]
    assert jax.jit(lambda x: scale(factor=2.0, x=x))(x).tolist() == [0, 2, 4, 6, 8]
    assert jax.vmap(lambda x: scale(x, 2.0))(jnp.ones((2, 3))).tolist() == [[2] * 3] * 2
    found = jax.jit(lambda x: total([np.ones(5, np.float32), x], factor=2.0))(x)
    assert (found["total"].tolist(), int(found["n"])) == ([20] * 5, 2)
    assert jax.eval_shape(lambda x: scale(x, 2.0), x).shape == (5,)
    with pytest.raises(TypeError, match=r"bump writes cache, and JAX traces .* call bump\.jax"):
        jax.jit(lambda x: bump(x, x))(x)
    with pytest.raises(ValueError, match="x must have one or two dimensions"):
        jax.jit(lambda x: scale(x, 2.0))(jnp.zeros((1, 1, 1)))
    with pytest.raises(TypeError, match=r"factor is a number, .* static_argnames='factor'"):
        jax.jit(lambda x, factor: scale(x, factor))(x, 2.0)
    # Of what JAX does not trace, errors are as they were.
    with pytest.raises(TypeError, match="factor must be a float"):
        scale(x, x)


def test_the_gradient_is_a_function(kernels, scale, x):
    @cl.function
    def gradient(grad, factor: float):
        y = cl.empty_like(grad)
        kernels["scale<float>"][1, 64](y, grad, factor, grad.size)
        return y

    scale.backward(gradient)
    assert jax.grad(lambda x: scale.jax(x, 3.0).sum())(x).tolist() == [3] * 5


def test_gradients_that_there_are_not(kernels, scale, x):
    @cl.function
    def bump(cache):
        kernels["add"][1, 64](cache, 1.0, cache.size)

    with pytest.raises(TypeError, match=r"scale has no gradient: .* with scale.backward"):
        jax.grad(lambda x: scale.jax(x, 3.0).sum())(x)
    bump.backward(lambda grad: grad)
    with pytest.raises(TypeError, match="bump writes or returns an argument"):
        jax.grad(lambda x: bump.jax(x).sum())(x)
    scale.backward(lambda grad: (grad, grad))
    with pytest.raises(TypeError, match="returned 2 gradients, and there are 1 array parameters"):
        jax.grad(lambda x: scale.jax(x, 3.0).sum())(x)


@pytest.mark.parametrize(
    "way",
    [
        "sequential",
        "sequential_unrolled",
        "broadcast_all",
        lambda size, batched, x, factor: x * factor,
    ],
    ids=["sequential", "sequential_unrolled", "broadcast_all", "rule"],
)
def test_batches(scale, way):
    operator = cl.jax_op(scale, vmap=way)
    rows = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    assert jax.vmap(lambda x: operator(x, 3.0))(rows).tolist() == (rows * 3).tolist()
    columns = jax.vmap(lambda x: operator(x, 3.0), in_axes=1, out_axes=1)
    assert jax.jit(columns)(rows).tolist() == (rows * 3).tolist()


def test_loops_and_conditions(scale, x):
    def program(x):
        x = jax.lax.fori_loop(0, 3, lambda _, x: scale.jax(x, 2.0), x)
        return jax.lax.cond(x.sum() > 0, lambda x: scale.jax(x, 0.5), lambda x: x, x)

    assert jax.jit(program)(x).tolist() == (x * 4).tolist()


# ---- what changes between calls


def test_a_global_that_changes(kernels, x):
    factor = 2.0

    @cl.function
    def scaled(x):
        y = cl.empty_like(x)
        kernels["scale<float>"][1, 64](y, x, factor, x.size)
        return y

    program = jax.jit(scaled.jax)
    assert program(x).tolist() == (x * 2).tolist()
    factor = 3.0
    # The compiled program calls the function, which notices.
    assert program(x).tolist() == (x * 3).tolist()
    assert scaled.jax(x).tolist() == (x * 3).tolist()


def test_a_result_that_changes_is_an_error(kernels, x):
    more = 0

    @cl.function
    def made(x):
        return cl.zeros((x.size + more,), "float32")

    program = jax.jit(made.jax)
    assert program(x).shape == (5,)
    more = 1
    with pytest.raises(Exception, match="returned other arrays than when jax"):
        program(x).block_until_ready()
    assert made.jax(x).shape == (6,)


def test_many_threads(scale, x):
    program = jax.jit(lambda x, y: scale.jax(x, 2.0) + scale.jax(y, 3.0))
    found = []

    def call(i):
        for _ in range(5):
            found.append(program(x * i, x)[1].item() == 2 * i + 3)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 20


# ---- programs as files


def test_an_exported_program(scale, x):
    safe = jax.export.DisabledSafetyCheck.custom_call(scale.jax.target)
    program = jax.jit(lambda x: scale.jax(x, 2.0))
    with pytest.raises(ValueError, match="culaunch_function"):
        jax.export.export(program)(x)
    exported = jax.export.export(program, disabled_checks=[safe])(x)
    assert exported.call(x).tolist() == (x * 2).tolist()
    assert "culaunch_function" in exported.mlir_module()


EXPORTER = """
import sys
import jax, jax.export, jax.numpy as jnp
import culaunch as cl
cl.set_driver("emulator")
sys.path.insert(0, sys.argv[1])
import scaling
file = sys.argv[1] + "/program"
x = jnp.arange(4.0)
if sys.argv[2] == "write":
    safe = jax.export.DisabledSafetyCheck.custom_call(scaling.scale.jax.target)
    program = jax.jit(lambda x: scaling.scale.jax(x, 2.0))
    exported = jax.export.export(program, disabled_checks=[safe])
    open(file, "wb").write(exported(x).serialize())
elif sys.argv[2] == "read":
    scaling.scale.jax
    print(jax.export.deserialize(open(file, "rb").read()).call(x).tolist())
else:
    mesh = jax.sharding.Mesh(jax.devices(), "i")
    spec = jax.sharding.PartitionSpec("i")
    sharded = jax.shard_map(lambda x: scaling.scale.jax(x, 3.0), mesh=mesh, in_specs=spec,
                            out_specs=spec, check_vma=False)
    print(len(mesh.devices), jax.jit(sharded)(x).tolist())
"""
MODULE = """
import culaunch as cl
kernels = cl.load({path!r})

@cl.function
def scale(x, factor: float):
    y = cl.empty_like(x)
    kernels["scale<float>"][1, 64](y, x, factor, x.size)
    return y
"""


def run_steps(folder, *steps):
    image = cl.compile(SOURCE, arch="compute_80", names=["scale<float>"])
    (folder / "image.ptx").write_bytes(image.data)
    (folder / "scaling.py").write_text(MODULE.format(path=str(folder / "image.ptx")))
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    for step in steps:
        done = subprocess.run(
            [sys.executable, "-c", EXPORTER, str(folder), step],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, **flags},
        )
        assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.needs("flatbuffers")
def test_a_program_of_another_process(tmp_path):
    assert run_steps(tmp_path, "write", "read") == "[0.0, 2.0, 4.0, 6.0]"


@pytest.mark.slow
def test_shards(tmp_path):
    assert run_steps(tmp_path, "shards") == "2 [0.0, 3.0, 6.0, 9.0]"


def test_a_text_of_another_process():
    from culaunch._jax.texts import resolve

    text = '{"function":"%s","values":[],"arrays":[],"writes":[]}'
    with pytest.raises(RuntimeError, match="import the module nowhere before"):
        resolve(text % "nowhere:scale")
    with pytest.raises(RuntimeError, match="define the function at the top of a module"):
        resolve(text % "#123456789")


def test_a_function_of_a_library(scale, tmp_path, x):
    scale(np.ones(3, np.float32), 2.0)
    cl.save([scale], tmp_path / "scale.culib")
    library = cl.load_library(tmp_path / "scale.culib")
    assert jax.jit(lambda x: library.scale.jax(x, 3.0))(x).tolist() == (x * 3).tolist()
    assert jax.jit(lambda x: library.scale(x, 3.0))(x).tolist() == (x * 3).tolist()


# ---- errors


def test_errors_come_when_a_program_is_traced(scale, x):
    with pytest.raises(ValueError, match="x must have one or two dimensions"):
        jax.jit(lambda x: scale.jax(x, 2.0))(jnp.zeros((1, 1, 1)))
    with pytest.raises(cl.KernelNotFoundError, match=re.escape("scale<signed char>")):
        scale.jax(x.astype(jnp.int8), 2.0)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'factor'"):
        scale.jax(x)
    with pytest.raises(TypeError, match=r"factor is a number, .* static_argnames='factor'"):
        jax.jit(scale.jax)(x, 2.0)


def test_annotated_arguments(kernels, x):
    @cl.function
    def both(a: cl.Array("float32", "n"), b: cl.Array(cl.same("a"), "n")):
        return cl.empty_like(a)

    with pytest.raises(ValueError, match="b has 4 elements along n, a has 5"):
        jax.jit(both.jax)(x, x[1:])
    with pytest.raises(TypeError, match=r"a must be float32|float32"):
        both.jax(x.astype(jnp.float16), x)


def test_what_jax_cannot_have(kernels, x):
    @cl.function
    def double(x):
        return cl.empty(x.shape, "float64")

    @cl.function
    def strided(x):
        return cl.zeros_like(x)[::2]

    with pytest.raises(TypeError, match=r"returns float64, .*jax_enable_x64"):
        double.jax(x)
    with pytest.raises(TypeError, match=r"returns a view with the strides \(2,\)"):
        strided.jax(x)
    with pytest.raises(TypeError, match="jax_op takes a function of culaunch"):
        cl.jax_op(len)
    with pytest.raises(ValueError, match="vmap must be one of 'sequential'"):
        cl.jax_op(double, vmap="fast")
    shape = jax.export.symbolic_shape("n")
    with pytest.raises(TypeError, match="export a program for certain shapes"):
        jax.eval_shape(strided.jax, jax.ShapeDtypeStruct(shape, "float32"))


UNTOLD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry bump(.param .u64 y) {
  .reg .b64 %p<3>;
  .reg .f32 %f<3>;
  ld.param.u64 %p1, [y];
  cvta.to.global.u64 %p2, %p1;
  ld.global.f32 %f1, [%p2];
  add.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%p2], %f2;
  ret;
}
"""


def test_types_of_64_bits(x):
    @cl.function
    def wide(x):
        return cl.zeros(x.shape, "float64"), cl.zeros(x.shape, "int64")

    with pytest.raises(TypeError, match="jax_enable_x64"):
        wide.jax(x)
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        assert [one.dtype.name for one in jax.jit(wide.jax)(x)] == ["float64", "int64"]
    finally:
        jax.config.update("jax_enable_x64", before)


def test_what_a_batch_gives_a_call(kernels):
    """Sequential: once for each row. Broadcast: once, with one dimension more."""

    @cl.function
    def ranked(x):
        y = cl.empty_like(x)
        kernels["scale<float>"][cl.ceildiv(x.size, 64), 64](y, x, x.ndim * 1.0, x.size)
        return y

    rows = jnp.ones((4, 3))
    for way, factor in (("sequential", 1), ("sequential_unrolled", 1), ("broadcast_all", 2)):
        found = jax.vmap(cl.jax_op(ranked, vmap=way))(rows)
        assert found.tolist() == [[factor] * 3] * 4


def test_forward_mode_is_not_there(scale, x):
    scale.backward(lambda grad, factor: scale.jax(grad, factor))
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(lambda x: scale.jax(x, 2.0), (x,), (x,))


def test_names_of_functions_in_programs(scale, tmp_path):
    from culaunch._jax.texts import call_text

    def named(function):
        return call_text(function, (None, 2.0), (0, -1), ())

    assert '"function":"#' in named(scale)  # it is inside of another function
    scale(np.ones(3, np.float32), 2.0)
    cl.save([scale], tmp_path / "scale.culib")
    assert '"function":"#' in named(cl.load_library(tmp_path / "scale.culib").scale)


def test_what_kernels_do_not_say(kernels, x):
    bump = cl.load(UNTOLD.encode())["bump"]

    @cl.function
    def first(x):
        bump[1, 1](x)

    with pytest.raises(TypeError, match=r"do not say whether they write x, .*mutates="):
        first.jax(x)
    assert cl.function(mutates=["x"])(first.__wrapped__).jax(x).tolist() == [1, 1, 2, 3, 4]


def test_an_error_while_a_program_runs(kernels, x):
    wrong = "add"

    @cl.function
    def changed(x):
        y = cl.zeros_like(x)
        kernels[wrong][1, 64](y, 1.0, x.size)
        return y

    program = jax.jit(changed.jax)
    assert program(x).tolist() == [1] * 5
    wrong = "scale<double>"
    with pytest.raises(Exception, match=r"TypeError: .*scale"):
        program(x).block_until_ready()


@pytest.mark.parametrize(
    "header",
    ["", "#define XLA_FFI_API_MAJOR 1\nXLA_FFI_DeviceOrdinal_Get", "#define XLA_FFI_API_MAJOR 0"],
    ids=["none", "another", "without ordinals"],
)
def test_jax_that_is_too_old(monkeypatch, tmp_path, header):
    from culaunch._jax import package

    folder = tmp_path / "xla" / "ffi" / "api"
    folder.mkdir(parents=True)
    (folder / "c_api.h").write_text(f"{header}\n#define XLA_FFI_API_MINOR 1\n")
    monkeypatch.setattr(package, "_is_registered", False)
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    with pytest.raises(cl.MissingDependencyError, match=r"needs JAX 0\.6 or newer, .*'jax>=0\.6'"):
        package.jax_package()


def test_one_plan_for_calls_that_are_alike(scale, x):
    operator = cl.jax_op(scale)
    traces = []

    @jax.jit
    def program(x):
        traces.append(1)
        return operator(x, 2.0) + operator(x + 1, 2.0)

    for _ in range(3):
        assert program(x).tolist() == [2, 6, 10, 14, 18]
        operator(x, 2.0)
    assert len(traces) == 1
    assert len(operator._plans) == 1
    operator(x, 3.0)
    operator(x[1:], 2.0)
    assert len(operator._plans) == 3


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_the_headers_are_as_they_were_read():
    """Every structure of csrc/xla/abi.h lies in memory as the header of this JAX has it."""
    here = Path(__file__)
    abi = here.parents[2] / "csrc" / "xla" / "abi.h"
    command = [
        "g++", "-std=c++17", "-fsyntax-only", f'-DABI="{abi}"', f"-I{jax.ffi.include_dir()}",
        str(here.with_name("xla_layouts.cpp")),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
