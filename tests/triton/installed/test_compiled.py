"""What a call returned, kept and launched again, as libraries do that have a cache of their own."""

import pytest
from own_launcher import MARKS, run_both

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")


@pytest.fixture
def scale(on_emulator):
    import compiled_program

    return triton.jit(compiled_program.scale.fn)


def count():
    from culaunch.triton import report

    (found,) = [one for one in report(clear=True).kernels if one.name.endswith(".scale")]
    return found.native, found.triton


def test_it_is_native_and_counted(scale):
    from culaunch.triton import install

    x, out = torch.arange(100.0), torch.zeros(100)
    with install():
        compiled = scale[2,](x, 100, out, 64)
        for factor in (2.0, 3.0):
            assert compiled[2, 1, 1](x, 100, out, 64, factor) is None
            assert torch.equal(out, factor * x)
        assert count() == (3, 0)
        # Triton's own launcher is quick, and is not counted; here there is none.
        compiled.run(
            2, 1, 1, 0, compiled.function, compiled.packed_metadata, None, None, None,
            x, 100, out, 64, 7.0,
        )  # fmt: skip
        assert torch.equal(out, 7 * x)
        assert count() == (1, 0)
        warm = scale.warmup(x, 100, out, 32, 2.0, grid=(1,))
        warm[4, 1, 1](x, 100, out, 32, 5.0)
        assert torch.equal(out, 5 * x)
        # Without Triton's own driver nothing else could launch it.
        with pytest.raises(RuntimeError, match=r"Triton cannot launch .*report\(\) says why"):
            compiled[2, 1, 1](x, 100, out, 64)
        assert count() == (1, 1)
    assert "_culaunch_kept" not in vars(compiled)
    with pytest.raises(RuntimeError, match="Triton cannot launch"):
        compiled[2, 1, 1](x, 100, out, 64, 2.0)
    with install(exclude="*.scale"):
        with pytest.raises(RuntimeError, match="Triton cannot launch"):
            compiled[2, 1, 1](x, 100, out, 64, 2.0)
        assert count() == (0, 1)


def test_the_stand_in_for_tritons_driver_says_where_tensors_are(on_emulator):
    from culaunch.triton import install

    with install():
        driver = triton.runtime.driver.active
        assert driver.get_active_torch_device() == torch.device("cpu")


@pytest.mark.slow
@MARKS[1]
@MARKS[2]
def test_as_by_tritons_own_launcher(tmp_path):
    own, installed, errors = run_both("compiled_program.py", tmp_path)
    assert len(own) == 14
    assert sum("Error" in line for line in own) == 4
    for line, other in zip(own, installed, strict=True):
        assert line == other
    # The first call, three that are as it was compiled, an empty grid and the warm-up.
    assert errors.split("kernel")[1].split()[-1] != "0"
    assert [line.split()[1:] for line in errors.splitlines() if ".scale" in line] == [["6", "8"]]
