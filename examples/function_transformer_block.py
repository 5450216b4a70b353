"""One step of a transformer block as one function: twelve launches of Triton and CUDA kernels.

# needs triton
# needs torch
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

import culaunch as cl
from culaunch.triton import native

SOURCE = """
// y[b, o] = sum of x[b, i] * w[o, i], and added[b, o] where there is one. A warp for each output.
extern "C" __global__ void gemv(
    float* y, const float* x, const float* w, const float* added, int inputs, int outputs) {
  int o = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (o >= outputs) return;
  const float* row = w + (long long)o * inputs;
  const float* in = x + (long long)blockIdx.y * inputs;
  float sum = 0;
  for (int i = threadIdx.x % 32; i < inputs; i += 32) sum += row[i] * in[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  long long at = (long long)blockIdx.y * outputs + o;
  if (threadIdx.x % 32 == 0) y[at] = sum + (added != nullptr ? added[at] : 0.f);
}
// The attention of one step: q is [batch, heads, dim], k and v are [batch, most, heads, dim]. A
// block for each head; its scores are in shared memory.
extern "C" __global__ void attention(
    float* out, const float* q, const float* k, const float* v, int length, int most, int dim,
    float scale) {
  extern __shared__ float scores[];
  int heads = gridDim.x, head = blockIdx.x, warps = blockDim.x / 32, lane = threadIdx.x % 32;
  long long row = (long long)heads * dim;
  long long begin = blockIdx.y * most * row + (long long)head * dim;
  const float* query = q + blockIdx.y * row + (long long)head * dim;
  for (int t = threadIdx.x / 32; t < length; t += warps) {
    float sum = 0;
    for (int i = lane; i < dim; i += 32) sum += query[i] * k[begin + t * row + i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) scores[t] = sum * scale;
  }
  __syncthreads();
  float most_score = scores[0], total = 0;
  for (int t = 1; t < length; ++t) most_score = fmaxf(most_score, scores[t]);
  for (int t = 0; t < length; ++t) total += expf(scores[t] - most_score);
  for (int i = threadIdx.x; i < dim; i += blockDim.x) {
    float sum = 0;
    for (int t = 0; t < length; ++t) sum += expf(scores[t] - most_score) * v[begin + t * row + i];
    out[blockIdx.y * row + (long long)head * dim + i] = sum / total;
  }
}
"""


@triton.jit
def rms_norm(out, x, weight, size, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0) * size
    at = tl.arange(0, BLOCK)
    mask = at < size
    value = tl.load(x + row + at, mask=mask, other=0.0)
    scale = 1.0 / tl.sqrt(tl.sum(value * value) / size + eps)
    tl.store(out + row + at, value * scale * tl.load(weight + at, mask=mask), mask=mask)


@triton.jit
def rotated(x, cos, sin, position, row, HALF: tl.constexpr):
    at = tl.arange(0, HALF)
    c, s = tl.load(cos + position * HALF + at), tl.load(sin + position * HALF + at)
    a, b = tl.load(x + row + at), tl.load(x + row + HALF + at)
    return a * c - b * s, b * c + a * s


@triton.jit(do_not_specialize=["position"])
def rope(q, cos, sin, position, HALF: tl.constexpr):
    row = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)) * 2 * HALF
    a, b = rotated(q, cos, sin, position, row, HALF)
    tl.store(q + row + tl.arange(0, HALF), a)
    tl.store(q + row + HALF + tl.arange(0, HALF), b)


@triton.jit(do_not_specialize=["position"])
def append(keys, values, k, v, cos, sin, position, most, HALF: tl.constexpr):
    heads = tl.num_programs(0)
    row = (tl.program_id(1) * heads + tl.program_id(0)) * 2 * HALF
    to = ((tl.program_id(1) * most + position) * heads + tl.program_id(0)) * 2 * HALF
    a, b = rotated(k, cos, sin, position, row, HALF)
    at = tl.arange(0, HALF)
    tl.store(keys + to + at, a)
    tl.store(keys + to + HALF + at, b)
    tl.store(values + to + at, tl.load(v + row + at))
    tl.store(values + to + HALF + at, tl.load(v + row + HALF + at))


@triton.jit
def swiglu(out, gate_up, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(1) * size
    mask = at < size
    gate = tl.load(gate_up + 2 * row + at, mask=mask)
    up = tl.load(gate_up + 2 * row + size + at, mask=mask)
    tl.store(out + row + at, gate / (1.0 + tl.exp(-gate)) * up, mask=mask)


class Weights(NamedTuple):
    """The sizes and weights of the block; matrices are [outputs, inputs]."""

    norm: Any
    q: Any
    k: Any
    v: Any
    o: Any
    norm_after: Any
    gate_up: Any
    down: Any
    cos: Any
    sin: Any


class Kernels(NamedTuple):
    """The kernels, as the block launches them: natively, or through Triton."""

    rms_norm: Any
    rope: Any
    append: Any
    swiglu: Any
    gemv: Any
    attention: Any

    @classmethod
    def native(cls, cuda: Any) -> Kernels:
        """Return them as a function records them."""
        return cls(*map(native, (rms_norm, rope, append, swiglu)), cuda["gemv"], cuda["attention"])

    @classmethod
    def triton(cls, cuda: Any) -> Kernels:
        """Return them as Triton launches them."""
        return cls(rms_norm, rope, append, swiglu, cuda["gemv"], cuda["attention"])


def make_block(kernels: Kernels, empty: Any) -> Any:
    """Return the block over some kernels; ``empty(shape, like)`` allocates."""

    def gemv(x: Any, w: Any, added: Any = None) -> Any:
        outputs, inputs = w.shape
        y = empty((x.shape[0], outputs), x)
        kernels.gemv[(cl.ceildiv(outputs, 4), x.shape[0]), 128](y, x, w, added, inputs, outputs)
        return y

    def norm(x: Any, weight: Any) -> Any:
        y = empty(x.shape, x)
        size = x.shape[1]
        block = cl.next_power_of_2(size)
        kernels.rms_norm[(x.shape[0],)](y, x, weight, size, 1e-6, BLOCK=block)
        return y

    def block(x: Any, keys: Any, values: Any, weights: Any, position: int) -> Any:
        """Return the block's output for one token of each sequence; the cache gets that token."""
        w = Weights(*weights)
        batch, most, heads, dim = keys.shape
        cl.check((position >= 0) & (position < most), f"the cache has no room for {position}")
        h = norm(x, w.norm)
        q, k, v = gemv(h, w.q), gemv(h, w.k), gemv(h, w.v)
        kernels.rope[heads, batch](q, w.cos, w.sin, position, HALF=dim // 2)
        kernels.append[heads, batch](
            keys, values, k, v, w.cos, w.sin, position, most, HALF=dim // 2
        )
        mixed = empty(q.shape, q)
        kernels.attention[(heads, batch), 128, 4 * (position + 1)](
            mixed, q, keys, values, position + 1, most, dim, 1 / math.sqrt(dim)
        )
        x = gemv(mixed, w.o, x)
        gate_up = gemv(norm(x, w.norm_after), w.gate_up)
        size = gate_up.shape[1] // 2
        hidden = empty((batch, size), x)
        kernels.swiglu[cl.ceildiv(size, 256), batch](hidden, gate_up, size, BLOCK=256)
        return gemv(hidden, w.down, x)

    return block


def make_arguments(device: str, *, is_small: bool) -> tuple[Any, ...]:
    """Return random arguments of the block."""
    batch, most, heads, dim, size = (2, 8, 2, 16, 48) if is_small else (2, 256, 16, 64, 2816)
    width = heads * dim
    angles = torch.outer(torch.arange(most), 1e4 ** (-torch.arange(dim // 2) / (dim / 2)))

    def normal(*shape: int) -> torch.Tensor:
        return (torch.randn(shape) / math.sqrt(shape[-1])).to(device)

    weights = Weights(
        1 + normal(width), *(normal(width, width) for _ in range(4)), 1 + normal(width),
        normal(2 * size, width), normal(width, size),
        angles.cos().to(device), angles.sin().to(device),
    )  # fmt: skip
    keys, values = (normal(batch, most, heads, dim) for _ in range(2))
    return normal(batch, width), keys, values, tuple(weights), 5


def reference(x: Any, keys: Any, values: Any, weights: Any, position: int) -> Any:
    """Compute the block with torch, in float64; the cache is changed."""
    w = Weights(*(one.double() for one in weights))
    x, (batch, _, heads, dim) = x.double(), keys.shape

    def norm(x: Any, weight: Any) -> Any:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight

    def rotated(x: Any) -> Any:
        a, b = x.view(batch, heads, dim).chunk(2, -1)
        c, s = w.cos[position], w.sin[position]
        return torch.cat([a * c - b * s, b * c + a * s], -1)

    h = norm(x, w.norm)
    keys[:, position] = rotated(h @ w.k.T)
    values[:, position] = (h @ w.v.T).view(batch, heads, dim)
    k, v = (cache[:, : position + 1].double() for cache in (keys, values))
    scores = torch.einsum("bhd,bthd->bht", rotated(h @ w.q.T), k) / math.sqrt(dim)
    mixed = torch.einsum("bht,bthd->bhd", scores.softmax(-1), v).reshape(batch, -1)
    x = x + mixed @ w.o.T
    gate, up = (norm(x, w.norm_after) @ w.gate_up.T).chunk(2, -1)
    return x + (torch.nn.functional.silu(gate) * up) @ w.down.T


def as_function(cuda: Any = None) -> Any:
    """Return the block as one function."""
    cuda = cl.load(cl.compile(SOURCE)) if cuda is None else cuda
    return cl.function(
        make_block(Kernels.native(cuda), lambda shape, _: cl.empty(shape, "float32"))
    )


def as_triton(cuda: Any = None) -> Any:
    """Return the same block in Python: Triton's kernels through Triton, the others by culaunch."""
    cuda = cl.load(cl.compile(SOURCE)) if cuda is None else cuda
    return make_block(Kernels.triton(cuda), lambda shape, like: like.new_empty(shape))


def main() -> None:
    """Compare one step with torch."""
    is_emulated = cl.driver.driver_name() == "emulator"
    arguments = make_arguments("cpu" if is_emulated else "cuda", is_small=is_emulated)
    x, keys, values, weights, position = arguments
    block = as_function()
    expected_keys, expected_values = keys.clone(), values.clone()
    expected = reference(x, expected_keys, expected_values, weights, position)
    for _ in range(2):  # recorded, then run natively
        result = block(x, keys, values, weights, position)
        torch.testing.assert_close(result.double(), expected, rtol=2e-4, atol=2e-4)
    torch.testing.assert_close(keys, expected_keys, rtol=2e-4, atol=2e-4)
    torch.testing.assert_close(values, expected_values, rtol=2e-4, atol=2e-4)
    launches = sum("[" in line and "](" in line for line in block.explain(*arguments).splitlines())
    print(f"a transformer block of {launches} launches in one call, on {cl.driver.driver_name()}")


if __name__ == "__main__":
    main()
