"""Results of calls that are kept and launched again, as in libraries with a cache of their own."""

import contextvars
import copy
import gc
import weakref

import pytest
from own_launcher import MARKS, run_both

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")


@pytest.fixture
def scale(on_emulator):
    import compiled_program

    from culaunch.triton import report

    report(clear=True)  # of other tests that use it
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
    assert "_culaunch_native" not in vars(compiled)
    with pytest.raises(RuntimeError, match="Triton cannot launch"):
        compiled[2, 1, 1](x, 100, out, 64, 2.0)
    with install(exclude="*.scale"):
        with pytest.raises(RuntimeError, match="Triton cannot launch"):
            compiled[2, 1, 1](x, 100, out, 64, 2.0)
        assert count() == (0, 1)


@pytest.mark.parametrize("is_used", [True, False])
def test_what_is_kept_of_it_ends_with_the_installation(scale, is_used):
    from culaunch.triton import install

    x, out = torch.arange(100.0), torch.zeros(100)
    with install():
        compiled = scale[2,](x, 100, out, 64)
        launch = compiled[2, 1, 1]
        if is_used:
            launch(x, 100, out, 64, 2.0)
    count()
    with pytest.raises(RuntimeError, match="Triton cannot launch"):
        launch(x, 100, out, 64, 2.0)
    with install():
        for one in (launch, compiled[2, 1, 1]):
            one(x, 100, out.zero_(), 64, 3.0)
            assert torch.equal(out, 3 * x)
        assert count() == (2, 0)
        with install(exclude="*.scale"), pytest.raises(RuntimeError, match="Triton cannot"):
            launch(x, 100, out, 64, 2.0)


def test_a_copy_of_it_is_one_of_its_own(scale):
    from culaunch.triton import install

    x, out = torch.arange(100.0), torch.zeros(100)
    with install():
        compiled = scale[2,](x, 100, out, 64)
        compiled[2, 1, 1](x, 100, out, 64, 2.0)
        count()
        other = copy.copy(compiled)
        other[2, 1, 1](x, 100, out, 64, 4.0)
        assert torch.equal(out, 4 * x)
        assert count() == (1, 0)
        halves = [vars(one)["_culaunch_native"] for one in (compiled, other)]
        assert halves[0] is not halves[1]


def test_it_goes_with_what_is_kept_of_it(scale):
    from culaunch.triton import install

    x, out = torch.arange(100.0), torch.zeros(100)
    with install():
        compiled = scale[2,](x, 100, out, 64)
        other = copy.copy(compiled)
        other[2, 1, 1](x, 100, out, 64, 2.0)
        references = [weakref.ref(vars(other)["_culaunch_native"]), weakref.ref(other)]
        del other
        gc.collect()
        assert [one() for one in references] == [None, None]


def test_hooks_are_called_by_triton_and_no_other_way(scale):
    """And one that took the place of another and does nothing changes nothing."""
    from culaunch.triton import install

    x, out = torch.arange(100.0), torch.zeros(100)
    runtime = triton.knobs.runtime
    before = runtime.launch_enter_hook
    with install():
        compiled = scale[2,](x, 100, out, 64)
        compiled[2, 1, 1](x, 100, out, 64, 2.0)
        try:
            runtime.launch_enter_hook = type(before)()
            for factor in (3.0, 4.0):
                compiled[2, 1, 1](x, 100, out, 64, factor)
                assert torch.equal(out, factor * x)
            assert count() == (4, 0)
            runtime.launch_enter_hook.add(lambda metadata: None)
            with pytest.raises(RuntimeError, match="Triton cannot launch"):
                compiled[2, 1, 1](x, 100, out, 64, 5.0)
            assert count() == (0, 1)
            runtime.launch_enter_hook.calls.clear()
            compiled[2, 1, 1](x, 100, out, 64, 6.0)
            assert torch.equal(out, 6 * x)
            assert count() == (1, 0)
        finally:
            runtime.launch_enter_hook = before


@pytest.mark.parametrize(
    "arguments",
    [
        lambda x, out: ((x, 100, out), {"BLOCK": 64, "factor": 2.0}),
        lambda x, out: ((x, 100, out, 64), {}),  # Triton has no defaults here
        lambda x, out: ((x, 100, out, 64, 2.0, 1), {}),
        lambda x, out: ((x, 100, out, 64, 2.0), {"num_warps": 4}),
        lambda x, out: ((x, 2**40, out, 64, 2.0), {}),
        lambda x, out: ((x, 100, out, [], 2.0), {}),
    ],
    ids=["keywords", "too few", "too many", "options", "too large", "a list"],
)
def test_what_it_was_not_compiled_for_is_tritons(scale, arguments):
    from culaunch.triton import install

    x, out = torch.arange(100.0), torch.zeros(100)
    with install():
        compiled = scale[2,](x, 100, out, 64)
        count()
        args, kwargs = arguments(x, out)
        for _ in range(2):
            with pytest.raises((RuntimeError, TypeError), match=r"Triton cannot launch|keyword"):
                compiled[2, 1, 1](*args, **kwargs)
        assert count() == (0, 2)


@pytest.mark.parametrize("grid", [(2,), (2, 1), [2], 2, None, ("a", 1, 1), (-1, 1, 1)], ids=str)
def test_a_grid_that_is_none_is_tritons(scale, grid):
    from culaunch.triton import install

    x, out = torch.arange(100.0), torch.zeros(100)
    with install():
        compiled = scale[2,](x, 100, out, 64)
        count()
        launch = compiled[grid]  # as with Triton, which looks at it later
        with pytest.raises((RuntimeError, TypeError, IndexError)):
            launch(x, 100, out, 64, 2.0)
        assert count() == (0, 1)
        for longer in ([2, 1, 1], (2, 1, 1, 9)):
            compiled[longer](x, 100, out.zero_(), 64, 3.0)
            assert torch.equal(out, 3 * x)
        assert count() == (2, 0)


def test_the_users_allocator_is_asked_for_scratch(recorder, tutorials):
    from culaunch.triton import install as install_triton

    asked = []

    def allocate(size, alignment, stream):
        asked.append((size, alignment, stream))
        return torch.empty(size, dtype=torch.int8)

    def body():
        x, y = torch.zeros(64, 96), torch.zeros(64, 96)
        compiled = tutorials.copy_tiles[2, 3](x, y, 64, 96, BLOCK=32)
        assert asked == []
        triton.set_allocator(allocate)
        compiled[2, 3, 1](x, y, 64, 96, 32)

    with install_triton():
        contextvars.copy_context().run(body)
    assert asked == [(6 * 256, 128, 0)]
    assert recorder.count("cuMemAllocAsync") == 1


def test_the_stand_in_for_tritons_driver_says_where_tensors_are(on_emulator):
    from culaunch.triton import install

    with install():
        driver = triton.runtime.driver.active
        assert driver.get_active_torch_device() == torch.device("cpu")


@pytest.mark.slow
@MARKS[1]
@MARKS[2]
def test_as_by_tritons_own_launcher(run_after_torch, tmp_path):
    own, installed, errors = run_both(run_after_torch, "compiled_program.py", tmp_path)
    assert len(own) == 14
    assert sum("Error" in line for line in own) == 4
    for line, other in zip(own, installed, strict=True):
        assert line == other
    # The first call, three that are as it was compiled, an empty grid and the warm-up.
    assert errors.split("kernel")[1].split()[-1] != "0"
    assert [line.split()[1:] for line in errors.splitlines() if ".scale" in line] == [["6", "8"]]
