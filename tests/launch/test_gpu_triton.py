"""A Triton matmul cubin launched by hand, the case of triton-lang/triton#4425."""

import pytest

import culaunch as cl

pytestmark = [
    pytest.mark.needs("triton", "torch"),
    pytest.mark.filterwarnings("ignore", "error:::culaunch"),  # Triton's are its own
]

M, N, K = 256, 192, 128
BLOCK = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}


@pytest.fixture(scope="module")
def matmul():
    import triton
    import triton.language as tl

    @triton.jit
    def matmul_kernel(
        a, b, c, m, n, k, stride_a, stride_b, stride_c,
        BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    ):  # fmt: skip
        rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, k, BLOCK_K):
            inner = start + tl.arange(0, BLOCK_K)
            left = tl.load(a + rows[:, None] * stride_a + inner[None, :])
            right = tl.load(b + inner[:, None] * stride_b + columns[None, :])
            total = tl.dot(left, right, total)
        tl.store(c + rows[:, None] * stride_c + columns[None, :], total)

    return matmul_kernel


def build(kernel, capability):
    from triton import compile as compile_triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    numbers = ("m", "n", "k", "stride_a", "stride_b", "stride_c")
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32", **dict.fromkeys(numbers, "i32")}
    signature |= dict.fromkeys(BLOCK, "constexpr")
    constants = {(9 + i,): value for i, value in enumerate(BLOCK.values())}
    divisible = {(i,): [["tt.divisibility", 16]] for i in range(9)}
    source = ASTSource(kernel, signature, constants, divisible)
    return compile_triton(source, target=GPUTarget("cuda", capability, 32))


MISSING = (
    r"matmul_kernel takes 11 arguments .*\(got 9\)\. If this is a Triton kernel, its hidden "
    r"scratch pointers are missing \(one since Triton 3\.3, two since 3\.5\): pass None "
    r"for each at the end"
)


@pytest.mark.slow
def test_a_call_without_the_hidden_arguments_is_refused(driver, matmul):
    built = build(matmul, 90)
    kernel = cl.load(built.asm["cubin"])[built.metadata.name]
    shared, threads = built.metadata.shared, 32 * built.metadata.num_warps
    launcher = kernel[(4, 3), threads, shared]
    with pytest.raises(TypeError, match=MISSING):
        launcher(0x1000, 0x2000, 0x3000, M, N, K, K, N, N)
    launcher(0x1000, 0x2000, 0x3000, M, N, K, K, N, N, None, None)
    assert driver.last.arguments[9:] == (bytes(8), bytes(8))
    assert driver.last.shared_memory == shared


@pytest.mark.gpu
def test_the_right_call_gives_the_right_numbers(matmul):
    import torch

    major, minor = torch.cuda.get_device_capability()
    built = build(matmul, 10 * major + minor)
    kernel = cl.load(built.asm["cubin"])[built.metadata.name]
    a = torch.randn(M, K, device="cuda", dtype=torch.float16)
    b = torch.randn(K, N, device="cuda", dtype=torch.float16)
    c = torch.zeros(M, N, device="cuda")
    grid = (M // BLOCK["BLOCK_M"], N // BLOCK["BLOCK_N"])
    launcher = kernel[grid, 32 * built.metadata.num_warps, built.metadata.shared]
    with pytest.raises(TypeError, match=MISSING):
        launcher(a, b, c, M, N, K, K, N, N)
    with pytest.raises(TypeError):
        launcher(a, b, c, M, N, K, K, N, N, None, "scratch")
    launcher(a, b, c, M, N, K, K, N, N, None, None)
    torch.testing.assert_close(c, (a @ b).float(), atol=2e-2, rtol=2e-2)
