"""Heuristics that read shapes of arrays, in sets: saved as expressions, or refused by name."""

import pytest

pytestmark = pytest.mark.needs("triton", "torch")

FLOATS = "*fp32:16, *fp32:16, i32"

SHAPED = {
    "whole rows": lambda args: args["x_ptr"].shape[0] % args["BLOCK"] == 0,
    "method": lambda args: args["x_ptr"].size(-1) % args["BLOCK"] == 0,
    "count": lambda args: args["x_ptr"].numel() % args["BLOCK"] == 0 and args["x_ptr"].ndim == 1,
    "stride": lambda args: args["x_ptr"].stride(0) == 1 and args["x_ptr"].shape[0] % 64 == 0,
}


@pytest.mark.slow
@pytest.mark.parametrize("which", SHAPED)
def test_a_heuristic_that_reads_a_shape_is_saved(kernels, emulator, tmp_path, which):
    import numpy as np
    import torch
    import triton

    from culaunch.triton import KernelSet, compile  # noqa: A004

    kernel = triton.heuristics({"EVEN": SHAPED[which]})(kernels.guarded)
    made = compile(kernel, FLOATS, arch="sm_80", keep_ptx=True, constants={"BLOCK": 64})
    assert {one.constants["EVEN"] for one in made.variants} == {True, False}
    made.save(tmp_path / "k.culib")
    loaded = KernelSet.load(tmp_path / "k.culib")
    assert loaded.computed == made.computed
    assert "x_ptr." in loaded.computed["EVEN"]
    # The variant for whole blocks does not look at n, so its results
    # show which one ran.
    for size in (64, 63, 64, 128, 65, 64):
        for x in (torch.ones(size), np.ones(size, "f4")):
            out = torch.zeros(64) if isinstance(x, torch.Tensor) else np.zeros(64, "f4")
            loaded[(1,)](x, out, 40)
            expected = 64 if size % 64 == 0 else 40
            assert out.sum() == expected
    if which == "stride":
        out = torch.zeros(64)
        loaded[(1,)](torch.ones(128)[::2], out, 40)
        assert out.sum() == 40


def test_what_of_a_shape_no_expression_has(kernels):
    import triton

    from culaunch.triton import compile  # noqa: A004

    for function in (
        lambda args: len(args["x_ptr"].shape) == 1,
        lambda args: args["x_ptr"].shape == args["out_ptr"].shape,
        lambda args: args["x_ptr"].is_contiguous(),
        lambda args: isinstance(args["x_ptr"].shape, tuple),
        lambda args: max(args["x_ptr"].shape) == 1,
        lambda args: 3 in args["x_ptr"].shape,
        lambda args: args["x_ptr"].shape[0].size(0) == 1,
        lambda args: args["x_ptr"].shape[args["n"]] == 1,
    ):
        kernel = triton.heuristics({"EVEN": function})(kernels.guarded)
        with pytest.raises(ValueError, match="the heuristic EVEN of guarded cannot be saved"):
            compile(kernel, FLOATS, arch="sm_80", constants={"BLOCK": 64})


def test_c_has_no_shapes(kernels):
    import triton

    from culaunch.triton import compile  # noqa: A004

    kernel = triton.heuristics({"EVEN": SHAPED["method"]})(kernels.guarded)
    made = compile(kernel, FLOATS, arch="sm_80", constants={"BLOCK": 64})
    with pytest.raises(ValueError, match="C cannot evaluate the heuristic EVEN"):
        made.write_c("unused")
