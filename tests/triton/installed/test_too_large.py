"""Launches that are too large for a device fail as with Triton's own, on the emulator, too."""

import pytest

pytestmark = [pytest.mark.usefixtures("on_emulator"), pytest.mark.needs("triton", "torch")]


@pytest.fixture
def torch():
    import torch

    return torch


def test_an_autotuner_passes_over_what_has_too_many_threads(torch):
    import triton
    from triton.runtime.errors import OutOfResources
    from wide_kernels import copy

    from culaunch.triton import install

    x = torch.randn(4096)
    with install():
        with pytest.raises(OutOfResources) as caught:
            copy[(1,)](x, x, 4096, B=4096, num_warps=64)
        assert str(caught.value).startswith(
            "out of resource: threads, Required: 2048, Hardware limit: 1024."
        )
        configurations = [triton.Config({}, num_warps=warps) for warps in (64, 4)]
        tuned = triton.autotune(configurations, key=["n"])(copy)
        out = torch.empty_like(x)
        tuned[(1,)](x, out, 4096, B=4096)
        assert torch.equal(out, x)
        assert tuned.best_config.num_warps == 4


def test_a_grid_that_is_no_int_of_c_is_an_overflow_error(torch):
    from wide_kernels import copy

    import culaunch as cl
    from culaunch.triton import install, native

    x, out = torch.randn(16), torch.zeros(16)
    for kernel, context in ((copy, install), (native(copy), None)):
        with context() if context else pytest.MonkeyPatch.context():
            for grid in ((2**31,), (1, 2**32 - 1), (1, 1, 2**31)):
                for given in (grid, lambda meta, grid=grid: grid):
                    with pytest.raises(OverflowError, match="the grid of copy is too large"):
                        kernel[given](x, out, 16, B=16)
            # The driver refuses what is one.
            with pytest.raises(cl.LaunchError, match="is too large") as caught:
                kernel[(1, 65_536)](x, out, 16, B=16)
            assert not isinstance(caught.value, OverflowError)
    assert not out.any()
