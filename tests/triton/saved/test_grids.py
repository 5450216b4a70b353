"""Grids that a set brings with it."""

import pytest

pytestmark = pytest.mark.needs("triton", "torch")

FLOATS = "*fp32:16, *fp32:16, i32"


def test_a_grid_where_the_constant_is_left_open(kernels, recorder):
    """The constants of the variant count, and may differ from call to call."""
    import torch

    from culaunch.triton import compile  # noqa: A004

    made = compile(
        kernels.accumulate, "*fp32:16, *fp32:16, i32", arch="sm_90a", constants={"BLOCK": 64},
        grid=lambda meta: (-(-meta["n"] // meta["BLOCK"]), 2),
    ).merge(
        compile(
            kernels.accumulate, "*fp16:16, *fp16:16, i32", arch="sm_90a", constants={"BLOCK": 256},
            grid="-(-n // BLOCK), 2",
        )
    )  # fmt: skip
    x = torch.ones(1024)
    for _ in range(3):
        made(x, x, 1000)
        assert recorder.last.grid == (16, 2, 1)
        made(x.half(), x.half(), 1000)
        assert recorder.last.grid == (4, 2, 1)


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ("cdiv(n, SIZE)", "reads SIZE, which is not a parameter"),
        ("1, 2, 3, 4", "1 to 3 numbers"),
        ((1, -1), "ints from 0"),
        ("1.5", "ints from 0"),
        ([], "1 to 3 numbers"),
        (print, "cannot be saved: it is not a function"),
        ({"x": 1}, "grid must be a str"),
        (1.5, "grid must be a str"),
        (True, "grid must be a str"),
        ("n / BLOCK", r"\(n / BLOCK\) is a float: divide with // or cdiv"),
        ("max(n * 1.5, 2.0) // 1", "is a float"),
        ("cdiv(n, BLOCK), n // 0", r"\(n // 0\) divides by 0"),
        ("1 + n % (BLOCK - BLOCK) // 0", "divides by 0"),
        ("n > 1", r"\(n > 1\) is True or False"),
        ("x_ptr + n", r"computes with x_ptr, which is not a number but \*fp32"),
        ("x_ptr.shape", "is not supported in an expression"),
        ("x_ptr.shape[n]", "is not supported in an expression"),
        ("x_ptr.size()", "is not supported in an expression"),
        ("os.system('ls')", "is not supported in an expression"),
        ("nothing.shape[0]", "reads nothing, which is not a parameter"),
    ],
)
def test_grids_that_are_none(kernels, grid, words):
    from culaunch.triton import compile  # noqa: A004

    with pytest.raises((TypeError, ValueError), match=words):
        compile(kernels.accumulate, FLOATS, arch="sm_80", constants={"BLOCK": 64}, grid=grid)


def test_a_grid_of_shapes_as_text(kernels, recorder):
    import torch

    from culaunch.triton import compile  # noqa: A004

    made = compile(
        kernels.accumulate, FLOATS, arch="sm_90a", constants={"BLOCK": 64},
        grid="triton.cdiv(x_ptr.shape[0], BLOCK), x_ptr.size(-1) + x_ptr.stride(0), "
             "math.ceil(x_ptr.numel() / 3) + x_ptr.ndim + x_ptr.dim()",
    )  # fmt: skip
    made(torch.ones(130, 2), torch.ones(1), 0)
    assert recorder.last.grid == (3, 4, 91)
    # A branch that no call takes is nobody's mistake.
    compile(kernels.accumulate, FLOATS, arch="sm_90a", constants={"BLOCK": 64},
            grid="1 if n is not None else n // 0")  # fmt: skip


def test_a_grid_that_comes_out_wrong(kernels, recorder):
    import torch

    from culaunch.triton import compile  # noqa: A004

    x = torch.ones(64)
    made = compile(
        kernels.accumulate,
        FLOATS,
        arch="sm_90a",
        constants={"BLOCK": 64},
        grid="n + 1 if n > 6 else n / 2",
    )
    with pytest.raises(ValueError, match=r"the grid .* of accumulate: .* is 3.0"):
        made(x, x, 6)
    made = compile(kernels.accumulate, FLOATS, arch="sm_90a", constants={"BLOCK": 64}, grid="8//n")
    with pytest.raises(ValueError, match=r"zero"):
        made(x, x, 0)
    made(x, x, 4)
    assert recorder.last.grid == (2, 1, 1)
    made = compile(
        kernels.accumulate, FLOATS, arch="sm_90a", constants={"BLOCK": 64}, grid="n - 8, n << 20"
    )
    for n, words in (
        (6, r"\(n - 8\) is -2, but it must be from 0"),
        (2048, r"\(n << 20\) is 2147483648, but it must be from 0"),
    ):
        with pytest.raises(ValueError, match=words):
            made(x, x, n)
    plain = compile(kernels.accumulate, FLOATS, arch="sm_90a", constants={"BLOCK": 64})
    assert plain.grid is None
    with pytest.raises(TypeError, match="accumulate has no grid of its own"):
        plain(x, x, 6)
