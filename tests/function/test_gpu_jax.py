"""Functions in programs of JAX on a GPU: XLA's stream, memory and graphs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from bodies import make_scale, make_total

import culaunch as cl

pytestmark = [pytest.mark.gpu, pytest.mark.needs("jax")]

SOURCE = r"""
template <class T> __global__ void scale(T* y, const T* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (T)((float)x[i] * a);
}
__global__ void add(float* y, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += value;
}
// The whole array is late: what reads it on another stream reads what was there before.
__global__ void slow_scale(float* y, const float* x, float a, int n, long long clocks) {
  long long start = clock64();
  while (clock64() - start < clocks) {}
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = x[i] * a;
}
__global__ void partial_sums(float* partial, const float* x, int n) {
  __shared__ float sums[256];
  float sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];
}
"""
NAMES = ["scale<float>", "scale<double>", "scale<int>"]
BIG = 1 << 24


@pytest.fixture(scope="module")
def jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("needs jax-cuda")
    return jax


@pytest.fixture(scope="module")
def jnp(jax):
    return jax.numpy


@pytest.fixture(scope="module")
def kernels():
    return cl.load(cl.compile(SOURCE, arch="native", names=NAMES))


@pytest.fixture
def scale(kernels):
    return make_scale(kernels, least=1)


@pytest.fixture
def late(kernels):
    """Scale, much later than it is launched."""

    @cl.function
    def late(x, factor: float):
        y = cl.empty_like(x)
        kernels["slow_scale"][256, 256](y, x, factor, x.size, 100_000_000)
        return y

    return late


@pytest.fixture
def total(kernels):
    return make_total(kernels, new=cl.empty)


# ---- in XLA's stream


def test_in_a_program(jax, jnp, scale):
    program = jax.jit(lambda x: scale.jax(x + 1, 3.0) * 2)
    x = jnp.arange(1000, dtype=jnp.float32)
    assert jnp.array_equal(program(x), (x + 1) * 6)
    assert jnp.array_equal(program(x.reshape(10, 100)), (x.reshape(10, 100) + 1) * 6)
    assert scale.jax(x.astype(jnp.int32), 2.0).dtype == jnp.int32
    assert scale.jax(jnp.zeros((0, 3)), 2.0).shape == (0, 3)


def test_between_the_kernels_of_xla(jax, jnp, late):
    # Each step reads what the one before has written: a launch on another stream comes too early.
    @jax.jit
    def program(x):
        y = jnp.sin(x) * jnp.float32(2)
        z = late.jax(y, 0.5)
        w = jnp.cumsum(z.reshape(-1, 1024), axis=1)
        return late.jax(w, 2.0) - w

    x = jnp.linspace(0, 3, BIG, dtype=jnp.float32)
    expected = jax.jit(lambda x: jnp.cumsum(jnp.sin(x).reshape(-1, 1024), axis=1))(x)
    for _ in range(3):
        assert jnp.allclose(program(x), expected, rtol=1e-4, atol=1e-3)


def test_calls_at_once_are_in_order(jnp, late, scale):
    x = jnp.ones(BIG, jnp.float32)
    y = late.jax(x, 2.0)
    z = scale.jax(y, 3.0)
    assert float((z + y).min()) == 8.0


def test_a_direct_call_and_a_program(jax, jnp, late, scale):
    # A direct call runs in JAX's stream of the array, and gives an array that is computed.
    x = jax.jit(lambda x: late.jax(x, 2.0))(jnp.ones(BIG, jnp.float32))
    y = scale(x, 2.0)
    assert float(jax.jit(lambda y: scale.jax(y, 2.0).max())(y)) == 8.0


# ---- memory


def test_scratch_memory_while_xla_runs_other_things(jax, jnp, total):
    @jax.jit
    def program(x):
        parts = [total.jax(x * i) for i in range(1, 9)]
        products = [jnp.dot(x[: 1 << 20].reshape(1024, 1024), x[: 1 << 20].reshape(1024, 1024))
                    for _ in range(2)]  # fmt: skip
        return jnp.stack(parts), products[0].sum() + products[1].sum()

    x = jnp.ones(1 << 22, jnp.float32)
    for _ in range(10):
        sums, products = program(x)
        assert sums[:, 0].tolist() == [i * float(1 << 22) for i in range(1, 9)]
        assert float(products) == 2.0 * 1024**3


def test_scratch_memory_goes_back(jax, jnp, total):
    x = jnp.ones(BIG, jnp.float32)
    program = jax.jit(total.jax)
    assert program(x).tolist() == [float(BIG)]
    device = x.devices().pop()
    before = device.memory_stats()["bytes_in_use"]
    for _ in range(50):
        program(x).block_until_ready()
    assert device.memory_stats()["bytes_in_use"] <= before + 4096


def test_several_results(jax, jnp, kernels):
    """Allocated in another order than they are returned, and views and arguments among them."""

    @cl.function
    def several(x):
        first, scratch, second = cl.empty_like(x), cl.empty_like(x), cl.empty_like(x)
        run = kernels["scale<float>"][cl.ceildiv(x.size, 256), 256]
        run(first, x, 2.0, x.size)
        run(scratch, first, 2.0, x.size)
        run(second, scratch, 2.0, x.size)
        return second, first, scratch.view(-1, 2), second[1:3], x, second

    x = jnp.arange(100_000, dtype=jnp.float32)
    for call in (several.jax, jax.jit(several.jax)):
        second, first, pairs, part, same, again = call(x)
        assert jnp.array_equal(second, x * 8)
        assert jnp.array_equal(first, x * 2)
        assert jnp.array_equal(pairs, (x * 4).reshape(-1, 2))
        assert part.tolist() == [8, 16]
        assert jnp.array_equal(same, x)
        assert jnp.array_equal(again, x * 8)


def test_arguments_that_are_written(jax, jnp, kernels):
    @cl.function
    def bump(cache, value: float):
        kernels["add"][cl.ceildiv(cache.size, 256), 256](cache, value, cache.size)
        return cache

    x = jnp.zeros(1 << 20, jnp.float32)
    assert float(bump.jax(x, 1.0).min()) == 1
    assert float(jax.jit(lambda x: bump.jax(bump.jax(x, 1.0), 2.0) + x)(x).max()) == 3
    assert float(x.max()) == 0
    before = x.unsafe_buffer_pointer()
    after = jax.jit(lambda x: bump.jax(x, 1.0), donate_argnums=0)(x)
    assert x.is_deleted()
    assert after.unsafe_buffer_pointer() == before
    assert float(after.min()) == float(after.max()) == 1


# ---- transformations


def test_gradients(jax, jnp, scale):
    @scale.backward
    def gradient(grad, x, factor):
        return scale(grad, factor)

    x = jnp.arange(1000, dtype=jnp.float32)
    gradient_of = jax.grad(lambda x: (scale.jax(x, 3.0) ** 2).sum())
    assert jnp.array_equal(jax.jit(gradient_of)(x), 18 * x)
    # What jax.grad computes at once calls the function with arrays.
    assert jnp.array_equal(gradient_of(x), 18 * x)


def test_a_function_is_called_where_jax_traces(jax, jnp, scale, total):
    x = jnp.ones(1000, jnp.float32)
    assert jax.jit(lambda x: total(scale(x, 3.0)))(x).tolist() == [3000]


@pytest.mark.parametrize("way", ["sequential", "sequential_unrolled", "broadcast_all"])
def test_batches(jax, jnp, scale, way):
    operator = cl.frameworks.jax_op(scale, vmap=way)
    rows = jnp.arange(6000, dtype=jnp.float32).reshape(6, 1000)
    assert jnp.array_equal(jax.jit(jax.vmap(lambda x: operator(x, 3.0)))(rows), rows * 3)


def test_loops_of_xla(jax, jnp, scale):
    # The body of a loop runs again and again in the same memory.
    def program(x):
        return jax.lax.fori_loop(0, 10, lambda i, x: scale.jax(x, 2.0) - x + 1, x)

    x = jnp.zeros(BIG // 16, jnp.float32)
    assert float(jax.jit(program)(x).min()) == float(jax.jit(program)(x).max()) == 10


MODULE = """
import culaunch as cl
kernels = cl.load({image!r})

@cl.function
def scale(x, factor: float):
    y = cl.empty_like(x)
    kernels["scale<float>"][cl.ceildiv(x.size, 256), 256](y, x, factor, x.size)
    return y
"""
STEPS = """
import sys
sys.path.insert(0, sys.argv[1])
import jax, jax.export, jax.numpy as jnp
import scaling
x = jnp.arange(8.0)
if sys.argv[2] == "write":
    safe = jax.export.DisabledSafetyCheck.custom_call(scaling.scale.jax.target)
    program = jax.jit(lambda x: scaling.scale.jax(x, 2.0))
    exported = jax.export.export(program, disabled_checks=[safe])(x)
    open(sys.argv[1] + "/program", "wb").write(exported.serialize())
elif sys.argv[2] == "read":
    scaling.scale.jax
    exported = jax.export.deserialize(open(sys.argv[1] + "/program", "rb").read())
    print(exported.call(x).tolist())
elif sys.argv[2] == "graphs":
    def program(x, steps):
        for _ in range(4):
            x = jnp.sin(x) + scaling.scale.jax(x, 2.0) + jnp.cos(x)
        return x
    def plain(x):
        for _ in range(4):
            x = jnp.sin(x) + x * 2.0 + jnp.cos(x)
        return x
    call = jax.jit(lambda x: program(x, 4))
    for i in range(20):
        given = jnp.linspace(0, 1, 100_000) * (i + 1)
        assert jnp.allclose(call(given), plain(given), rtol=1e-5, atol=1e-3), i
    print("right")
else:
    count = int(sys.argv[2])
    mesh = jax.sharding.Mesh(jax.devices()[:count], "i")
    spec = jax.sharding.PartitionSpec("i")
    sharded = jax.shard_map(lambda x: scaling.scale.jax(x, 3.0) + 1, mesh=mesh, in_specs=spec,
                            out_specs=spec, check_vma=False)
    y = jax.jit(sharded)(jnp.arange(8.0 * count))
    print(len(y.sharding.device_set), y.tolist() == [3.0 * i + 1 for i in range(8 * count)])
"""


@pytest.fixture
def in_a_process(tmp_path, jax):
    image = cl.compile(SOURCE, arch="native", names=NAMES)
    (tmp_path / "image.cubin").write_bytes(image.data)
    (tmp_path / "scaling.py").write_text(MODULE.format(image=str(tmp_path / "image.cubin")))

    def run(step, flags=""):
        # Several processes share the GPU: none may take all of its memory.
        environment = {
            **os.environ,
            "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip(),
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }
        done = subprocess.run(
            [sys.executable, "-c", STEPS, str(tmp_path), step],
            capture_output=True, text=True, timeout=300, check=False, env=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.mark.needs("flatbuffers")
def test_a_program_of_another_process(in_a_process):
    in_a_process("write")
    assert in_a_process("read") == str([2.0 * i for i in range(8)])


@pytest.mark.parametrize("flags", ["", "--xla_gpu_enable_command_buffer="], ids=["on", "off"])
def test_graphs_of_xla(in_a_process, flags):
    """XLA makes CUDA graphs of its own kernels; the call stays outside them, in order."""
    if not flags:
        flags = (
            "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUSTOM_CALL "
            "--xla_gpu_graph_min_graph_size=1"
        )
    assert in_a_process("graphs", flags) == "right"


def test_one_shard(in_a_process):
    assert in_a_process("1") == "1 True"


@pytest.mark.multi_gpu
def test_shards_on_two_devices(in_a_process):
    assert in_a_process("2") == "2 True"


# ---- errors and threads


def test_an_error_as_a_program_runs(jax, jnp, kernels):
    threads = 256

    @cl.function
    def changed(x):
        y = cl.empty_like(x)
        kernels["scale<float>"][1, threads](y, x, 2.0, x.size)
        return y

    program = jax.jit(changed.jax)
    x = jnp.ones(100, jnp.float32)
    assert program(x).tolist() == [2] * 100
    threads = 2048
    with pytest.raises(Exception, match=r"2048|threads"):
        program(x).block_until_ready()
    threads = 128
    assert program(x).tolist() == [2] * 100


def test_many_threads(jax, jnp, scale, total):
    program = jax.jit(lambda x: total.jax(scale.jax(x, 2.0)))
    found = []

    def call(i):
        x = jnp.full((1 << 16,), float(i), jnp.float32)
        found.extend(program(x).tolist() == [2.0 * i * (1 << 16)] for _ in range(20))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 80


def test_one_compilation_for_calls_that_are_alike(jax, jnp, scale):
    traces = []

    @jax.jit
    def program(x):
        traces.append(1)
        return scale.jax(x, 2.0)

    x = jnp.ones(1000, jnp.float32)
    for _ in range(5):
        program(x)
    assert len(traces) == 1
    assert program._cache_size() == 1


def test_numpy_arrays_are_put_on_the_device(scale):
    assert scale.jax(np.ones(3, np.float32), 2.0).tolist() == [2, 2, 2]
