"""The kernels of Triton's tutorials, rewritten, with functions that run them.

``run_NAME(kernel, device)`` launches `kernel` on inputs of its own and returns the outputs;
``expected_NAME(device)`` computes the same with PyTorch. Inputs come from a fixed seed.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


def place(tensor):
    """Put what a kernel reaches through an address in memory that the driver knows."""
    return tensor


def random(*shape, device, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype).to(device)


# ---- vector add


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def run_add(kernel, device, n=1000):
    x, y = random(n, device=device), random(n, device=device, seed=1)
    out = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=256)
    return [out]


def expected_add(device, n=1000):
    return [random(n, device=device) + random(n, device=device, seed=1)]


# ---- fused softmax


@triton.jit
def softmax(out_ptr, in_ptr, in_stride, out_stride, rows, columns, BLOCK: tl.constexpr, num_stages: tl.constexpr):  # fmt: skip  # noqa: E501
    first = tl.program_id(0)
    step = tl.num_programs(0)
    for row in tl.range(first, rows, step, num_stages=num_stages):
        offsets = tl.arange(0, BLOCK)
        mask = offsets < columns
        values = tl.load(in_ptr + row * in_stride + offsets, mask=mask, other=-float("inf"))
        numerator = tl.exp(values - tl.max(values, axis=0))
        result = numerator / tl.sum(numerator, axis=0)
        tl.store(out_ptr + row * out_stride + offsets, result, mask=mask)


def run_softmax(kernel, device):
    x = random(6, 97, device=device)
    out = torch.empty_like(x)
    kernel[(3, 1, 1)](out, x, x.stride(0), out.stride(0), 6, 97, 128, 2)
    return [out]


def expected_softmax(device):
    return [torch.softmax(random(6, 97, device=device), axis=1)]


# ---- matmul, autotuned, in groups of rows


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def matmul_body(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr):  # fmt: skip  # noqa: E501
    pid = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP * blocks_n
    first = pid // in_group * GROUP
    rows = min(blocks_m - first, GROUP)
    pid_m = first + (pid % in_group) % rows
    pid_n = (pid % in_group) // rows
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        total = tl.dot(a, b, total)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        total = leaky_relu(total)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_m[:, None] + stride_cn * offs_n[None, :]
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptrs, total.to(c_ptr.dtype.element_ty), mask=mask)


CONFIGS = [
    triton.Config({"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32, "GROUP": 4}, num_warps=2, num_stages=2),  # noqa: E501
    triton.Config({"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP": 2}, num_warps=4, num_stages=2),  # noqa: E501
]  # fmt: skip


def autotuned():
    """Make a new autotuner, which has tuned nothing."""
    return triton.autotune(configs=CONFIGS, key=["M", "N", "K"])(matmul_body)


MATMUL = (64, 48, 64)


def run_matmul(kernel, device, sizes=MATMUL, activation="leaky_relu"):
    m, n, k = sizes
    a = random(m, k, device=device, dtype=torch.float16)
    b = random(k, n, device=device, dtype=torch.float16, seed=1)
    c = torch.empty(m, n, device=device, dtype=torch.float16)
    kernel[lambda meta: (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)](
        a, b, c, m, n, k, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0),
        c.stride(1), ACTIVATION=activation,
    )  # fmt: skip
    return [c]


def expected_matmul(device, sizes=MATMUL):
    m, n, k = sizes
    a = random(m, k, device=device, dtype=torch.float16)
    b = random(k, n, device=device, dtype=torch.float16, seed=1)
    product = a.float() @ b.float()
    return [torch.nn.functional.leaky_relu(product).half()]


# ---- low-memory dropout


@triton.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def run_dropout(kernel, device, n=300):
    x = random(n, device=device)
    out = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n, 0.5, 123, BLOCK=128)
    return [out]


def expected_dropout(device, n=300):
    return None  # Philox: known through Triton's own launch alone


# ---- layer norm, forward and both steps of its backward


@triton.jit
def layer_norm(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        total += tl.load(X + columns, mask=columns < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        x = tl.load(X + columns, mask=columns < N, other=0.0).to(tl.float32)
        x = tl.where(columns < N, x - mean, 0.0)
        total += x * x
    rstd = 1 / tl.sqrt(tl.sum(total, axis=0) / N + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK):
        columns = off + tl.arange(0, BLOCK)
        mask = columns < N
        w = tl.load(W + columns, mask=mask)
        b = tl.load(B + columns, mask=mask)
        x = tl.load(X + columns, mask=mask, other=0.0).to(tl.float32)
        tl.store(Y + columns, (x - mean) * rstd * w + b, mask=mask)


def run_layer_norm(kernel, device, rows=4, columns=120):
    x = random(rows, columns, device=device)
    w, b = random(columns, device=device, seed=1), random(columns, device=device, seed=2)
    y = torch.empty_like(x)
    mean = torch.empty(rows, device=device)
    rstd = torch.empty(rows, device=device)
    kernel[(rows,)](x, y, w, b, mean, rstd, x.stride(0), columns, 1e-5, BLOCK=64, num_warps=2)
    return [y, mean, rstd]


def expected_layer_norm(device, rows=4, columns=120):
    x = random(rows, columns, device=device)
    w, b = random(columns, device=device, seed=1), random(columns, device=device, seed=2)
    y = torch.nn.functional.layer_norm(x, (columns,), w, b, 1e-5)
    rstd = torch.rsqrt(x.var(1, unbiased=False) + 1e-5)
    return [y, x.mean(1), rstd]


# ---- attention, forward


@triton.jit
def attention(Q, K, V, Out, scale, stride_h, stride_m, N_CTX, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip  # noqa: E501
    start = tl.program_id(0)
    base = tl.program_id(1) * stride_h
    offs_m = start * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    q = tl.load(Q + base + offs_m[:, None] * stride_m + offs_d[None, :])
    largest = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    norm = tl.zeros([BLOCK_M], dtype=tl.float32)
    total = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    end = N_CTX
    if CAUSAL:
        end = (start + 1) * BLOCK_M
    for n in range(0, end, BLOCK_N):
        k = tl.load(K + base + (n + offs_n)[None, :] * stride_m + offs_d[:, None])
        scores = tl.dot(q, k) * scale
        if CAUSAL:
            scores = tl.where(offs_m[:, None] >= (n + offs_n)[None, :], scores, -1.0e6)
        new_largest = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp(scores - new_largest[:, None])
        correction = tl.exp(largest - new_largest)
        norm = norm * correction + tl.sum(p, 1)
        total = total * correction[:, None]
        v = tl.load(V + base + (n + offs_n)[:, None] * stride_m + offs_d[None, :])
        total = tl.dot(p.to(tl.float16), v, total)
        largest = new_largest
    out = Out + base + offs_m[:, None] * stride_m + offs_d[None, :]
    tl.store(out, (total / norm[:, None]).to(tl.float16))


def attention_inputs(device, heads=2, n=64, d=32):
    return [random(heads, n, d, device=device, dtype=torch.float16, seed=i) for i in range(3)]


def run_attention(kernel, device):
    q, k, v = attention_inputs(device)
    out = torch.empty_like(q)
    heads, n, d = q.shape
    kernel[(triton.cdiv(n, 32), heads)](
        q, k, v, out, d**-0.5, q.stride(0), q.stride(1), n, D=d, BLOCK_M=32, BLOCK_N=32,
        CAUSAL=True, num_warps=4,
    )  # fmt: skip
    return [out]


def expected_attention(device):
    q, k, v = (one.float() for one in attention_inputs(device))
    scores = q @ k.transpose(1, 2) * q.shape[-1] ** -0.5
    mask = torch.ones(scores.shape[-2:], device=device, dtype=torch.bool).tril()
    return [(torch.softmax(scores.masked_fill(~mask, -float("inf")), -1) @ v).half()]


# ---- libdevice


@triton.jit
def asin(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, libdevice.asin(tl.load(x_ptr + offsets, mask=mask)), mask=mask)


def run_asin(kernel, device, n=300):
    x = random(n, device=device).sin()
    y = torch.empty_like(x)
    kernel[(triton.cdiv(n, 128),)](x, y, n, BLOCK=128)
    return [y]


def expected_asin(device, n=300):
    return [torch.asin(random(n, device=device).sin())]


# ---- grouped GEMM


@triton.jit
def grouped(a_ptrs, b_ptrs, c_ptrs, sizes, leading, groups, PROGRAMS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):  # fmt: skip  # noqa: E501
    tile = tl.program_id(0)
    done = 0
    for g in range(groups):
        m = tl.load(sizes + g * 3)
        n = tl.load(sizes + g * 3 + 1)
        k = tl.load(sizes + g * 3 + 2)
        tiles_n = tl.cdiv(n, BLOCK_N)
        tiles = tl.cdiv(m, BLOCK_M) * tiles_n
        while tile >= done and tile < done + tiles:
            lda = tl.load(leading + g * 3)
            ldb = tl.load(leading + g * 3 + 1)
            ldc = tl.load(leading + g * 3 + 2)
            a_ptr = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(b_ptrs + g).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float16))
            own = tile - done
            offs_m = own // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
            offs_n = own % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
            offs_k = tl.arange(0, BLOCK_K)
            total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for start in range(0, k, BLOCK_K):
                a = tl.load(a_ptr + offs_m[:, None] * lda + (start + offs_k)[None, :])
                b = tl.load(b_ptr + (start + offs_k)[:, None] * ldb + offs_n[None, :])
                total = tl.dot(a, b, total)
            tl.store(c_ptr + offs_m[:, None] * ldc + offs_n[None, :], total.to(tl.float16))
            tile += PROGRAMS
        done = done + tiles


GROUPS = [(32, 32, 32), (64, 32, 64)]


def grouped_inputs(device):
    half = {"device": device, "dtype": torch.float16}
    a = [random(m, k, seed=i, **half) for i, (m, n, k) in enumerate(GROUPS)]
    b = [random(k, n, seed=9 + i, **half) for i, (m, n, k) in enumerate(GROUPS)]
    return a, b


def run_grouped(kernel, device):
    a, b = grouped_inputs(device)
    c = [place(torch.empty(m, n, device=device, dtype=torch.float16)) for m, n, k in GROUPS]
    a, b = [place(one) for one in a], [place(one) for one in b]

    def addresses(tensors):
        return torch.tensor([one.data_ptr() for one in tensors], device=device)

    numbers = [size for group in GROUPS for size in group]
    sizes = torch.tensor(numbers, dtype=torch.int32, device=device)
    leading = [one for m, n, k in GROUPS for one in (k, n, n)]
    leading = torch.tensor(leading, dtype=torch.int32, device=device)
    kernel[(2,)](
        addresses(a), addresses(b), addresses(c), sizes, leading, len(GROUPS), PROGRAMS=2,
        BLOCK_M=32, BLOCK_N=32, BLOCK_K=32,
    )  # fmt: skip
    return c


def expected_grouped(device):
    return [(x.float() @ y.float()).half() for x, y in zip(*grouped_inputs(device), strict=True)]


# ---- persistent matmul with tensor descriptors (sm_90)


@triton.jit
def persistent(a_desc, b_desc, c_desc, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PROGRAMS: tl.constexpr):  # fmt: skip  # noqa: E501
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    for tile in range(tl.program_id(0), tiles, PROGRAMS):
        m = tile // tiles_n * BLOCK_M
        n = tile % tiles_n * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            a = a_desc.load([m, k])
            b = b_desc.load([n, k])
            total = tl.dot(a, b.T, total)
        c_desc.store([m, n], total.to(tl.float16))


def set_blocks(values):
    """Give host-side descriptors the blocks of a configuration, as the tutorial's hook does."""
    m, n, k = values["BLOCK_M"], values["BLOCK_N"], values["BLOCK_K"]
    values["a_desc"].block_shape = [m, k]
    values["b_desc"].block_shape = [n, k]
    values["c_desc"].block_shape = [m, n]


def autotuned_persistent():
    blocks = [{"BLOCK_M": m, "BLOCK_N": 64, "BLOCK_K": 64} for m in (64, 128)]
    configs = [triton.Config(one, num_warps=4, pre_hook=set_blocks) for one in blocks]
    return triton.autotune(configs=configs, key=["M", "N", "K"])(persistent)


PERSISTENT = (256, 192, 128)


def persistent_inputs(device):
    m, n, k = PERSISTENT
    half = {"device": device, "dtype": torch.float16}
    return random(m, k, **half), random(n, k, seed=1, **half)


def run_persistent(kernel, device, tuned=False):
    from triton.tools.tensor_descriptor import TensorDescriptor

    m, n, k = PERSISTENT
    a, b = persistent_inputs(device)
    c = torch.empty(m, n, device=device, dtype=torch.float16)
    blocks = {} if tuned else {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64}
    first = [1, 1] if tuned else [64, 64]
    descriptors = [TensorDescriptor.from_tensor(one, list(first)) for one in (a, b, c)]
    kernel[(4,)](*descriptors, m, n, k, PROGRAMS=4, **blocks)
    return [c]


def expected_persistent(device):
    a, b = persistent_inputs(device)
    return [(a.float() @ b.float().T).half()]


# ---- descriptors made on the device: they need global scratch


@triton.jit
def copy_tiles(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK, BLOCK])
    y = tl.make_tensor_descriptor(y_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK, BLOCK])
    m = tl.program_id(0) * BLOCK
    n = tl.program_id(1) * BLOCK
    y.store([m, n], x.load([m, n]) * 2)


def run_copy_tiles(kernel, device):
    x = random(64, 96, device=device)
    y = torch.empty_like(x)
    kernel[(2, 3)](x, y, 64, 96, BLOCK=32)
    return [y]


def expected_copy_tiles(device):
    return [random(64, 96, device=device) * 2]


SIMPLE = {
    "add": add, "softmax": softmax, "dropout": dropout, "layer_norm": layer_norm,
    "attention": attention, "asin": asin, "grouped": grouped,
}  # fmt: skip
