"""The quick path of a call gives the driver just what the general path gives it."""

import gc
import os
import random
import sys
import textwrap
import weakref
from pathlib import Path

import pytest

from culaunch import _core

pytestmark = pytest.mark.needs("triton", "torch")
NAMED = {"n": 7, "f": 1.5, "BLOCK": 32}


@pytest.fixture
def x():
    import torch

    return torch.zeros(4096)


@pytest.fixture
def kernel(recorder):
    from quick_kernels import mixed

    from culaunch.triton import native

    return native(mixed)


def told(recorder):
    """The last launch as the driver got it, without differences between two modules."""
    launch = recorder.last
    return launch.grid, launch.block, launch.stream, launch.arguments, launch.attributes.keys()


def served_quickly(kernel, call):
    """Call twice, the second time quickly."""
    call()
    before = kernel._misses
    call()
    return kernel._misses == before


def grid_of(number):
    return lambda meta: (number % 100 + meta["BLOCK"],)


@pytest.mark.parametrize("shortcut", ["numbers", "dicts", "torch", "forms", "functions"])
def test_a_call_without_a_shortcut_is_the_same(recorder, x, shortcut):
    """As where the trial of it failed."""
    import quick_kernels

    from culaunch.triton import native

    _core.use_shortcut(shortcut, False)
    try:
        kernel = native(quick_kernels.mixed)
        for number in (0, 1, 16, 2**30, -(2**40)):
            for _ in range(2):
                kernel[(1,)](x, x, number, 1.5, True, None, BLOCK=32)
                quick = told(recorder)
                kernel._call_plain((1,), (x, x, number, 1.5, True, None), {"BLOCK": 32})
                assert told(recorder) == quick
            grid = grid_of(number)
            for _ in range(2):  # learned, then known
                kernel[grid](x, x, number, 1.5, True, None, BLOCK=32)
                assert recorder.last.grid == (number % 100 + 32, 1, 1)
        if shortcut == "dicts":
            assert not kernel._is_watched
    finally:
        _core.use_shortcut(shortcut, True)


def test_changes_are_noticed_where_python_can(kernel, x):
    kernel[(1,)](x, x, 1, 1.0, True, None, BLOCK=32)
    if sys.version_info < (3, 13):  # later ones are tried when culaunch is loaded
        assert kernel._is_watched


@pytest.mark.slow
@pytest.mark.memory
def test_random_calls(kernel, recorder, x):
    """Every call as the general path makes it, whatever came before."""
    choose = random.Random(0)
    # Triton compiles for a kind of arguments, which takes long. All numbers of a row are one kind.
    numbers = [
        [1], [0, 16, 2**30, -(2**30), -(2**31)], [-1, 15, 1000, 2**30 - 1, 2**31 - 1],
        [2**31, 2**31 + 16, 2**62, -(2**63)], [-(2**63) + 1, 2**33 - 1], [2**63], [2**64 - 1],
    ]  # fmt: skip
    floats = [[0.0, -0.0, 1.5, float("inf"), 1e-310], [2, 34], [16]]
    tensors = [x, x[1:], x[4:], x.half(), x.int(), x.half()[1:]]
    fields = [
        tensors, tensors, numbers, floats, [[True, False], [1], [0]], [None, x, x[1:]],
        [{"BLOCK": 32}, {"BLOCK": 64}], [{}, {"num_warps": 2}, {"num_warps": 4}],
    ]  # fmt: skip
    seen = set()
    for _ in range(8):
        kinds = [kind := [choose.choice(field) for field in fields]]
        # And those that differ in one argument: a call that overlooks it takes the one before it
        # for the same. Numbers have most ways to differ.
        for i in (*range(len(fields)), 2, 2):
            kinds.append([*kind[:i], choose.choice(fields[i]), *kind[i + 1 :]])
        order = choose.sample(["n", "f", "flag", "maybe"], 4)
        for number in range(51):
            out, second, n, f, flag, maybe, block, options = choose.choice(kinds)
            args = [out, second, choose.choice(n), choose.choice(f), choose.choice(flag), maybe]
            grid = choose.choice(
                [(1,), (2, 3), (choose.randrange(1, 9),), lambda meta: (meta["BLOCK"],)]
            )
            style = number // 17
            if style == 0:
                positional, named = args, {**block, **options}
            elif style == 1:
                positional, named = [*args, block["BLOCK"]], options
            else:
                values = dict(zip(("n", "f", "flag", "maybe"), args[2:], strict=True))
                pairs = {name: values[name] for name in order}
                positional, named = args[:2], {**block, **pairs, **options}
            for _ in range(2):  # learned, then served
                kernel[grid](*positional, **named)
                quick = told(recorder)
                kernel._call_plain(grid, tuple(positional), named)
                assert told(recorder) == quick
            seen.add(quick[3])
    assert len(seen) > 100


@pytest.mark.parametrize(
    "call",
    [
        lambda k, x: k[(1,)](x, x, 7, 1.5, True, None, BLOCK=32),
        lambda k, x: k[(1,)](x, x, 7, 1.5, True, None, 32),
        lambda k, x: k[(1,)](out=x, x=x, n=7, f=1.5, flag=False, maybe=x, BLOCK=32, num_warps=2),
        lambda k, x: k[lambda meta: (meta["BLOCK"],)](x, x, 2**40, 1.5, True, None, BLOCK=32),
        lambda k, x: k[(1,)](x, x, 7, BLOCK=32),  # defaults
        lambda k, x: k[[1, 2]](x, x, 7, BLOCK=32),
        # The tuple of names is another one for each call.
        lambda k, x: k[(1,)](x, x, **NAMED),
        lambda k, x: k[lambda meta: (meta["BLOCK"],)](x, x, **NAMED),
    ],
)
def test_the_second_call_is_quick(kernel, recorder, x, call):
    assert served_quickly(kernel, lambda: call(kernel, x))


@pytest.mark.parametrize(
    "call",
    [
        lambda k, x: k[(1,)](x, x, 2**63, BLOCK=32),
        lambda k, x: k[(1,)](x, x, (1, 2)[0] == 1, 1.5, True, None, BLOCK=32, debug=None),
    ],
)
def test_what_is_rare_is_right_all_the_same(kernel, recorder, x, call):
    call(kernel, x)
    first = told(recorder)
    call(kernel, x)
    assert told(recorder) == first


def test_alternating_variants_are_all_quick(kernel, x):
    def call():
        for n in (1, 7, 16, 2**40):
            kernel[(1,)](x, x, n, BLOCK=32)

    assert served_quickly(kernel, call)


def test_alternating_forms_are_all_quick(kernel, x):
    def call():
        kernel[(1,)](x, x, 7, BLOCK=32)
        kernel[(1,)](x, x, 7, 32.0, BLOCK=32)
        kernel[(1,)](x, x, 7, 32, BLOCK=32)
        kernel[(1,)](x, x, n=7, maybe=x, BLOCK=32)

    assert served_quickly(kernel, call)


def test_names_in_another_order_or_by_other_objects(kernel, recorder, x):
    """New strings match the names of the form only if they are equal, in order."""
    for _ in range(3):
        for named in (
            {"n": 7, "f": 1.5, "BLOCK": 32},
            {"f": 1.5, "n": 7, "BLOCK": 32},
            {"n": 7, "BLOCK": 32},
            {"n": 7, "f": 2.5, "BLOCK,".rstrip(","): 32},  # not interned
        ):
            kernel[(1,)](x, x, **named)
            quick = told(recorder)
            kernel._call_plain((1,), (x, x), named)
            assert told(recorder) == quick
    with pytest.raises(TypeError, match="is missing argument 'n'"):
        kernel[(1,)](x, x, nn=7, f=1.5, BLOCK=32)


def test_constants_are_compared_by_value(kernel, recorder, x):
    for _ in range(2):
        for block in (1000, 2000):
            big = int(str(block)) + 24 * block // 1000  # a new object each time
            kernel[(1,)](x, x, 7, BLOCK=big)
            by_value = told(recorder)
            kernel._call_plain((1,), (x, x, 7), {"BLOCK": big})
            assert told(recorder) == by_value
    assert kernel._key_count == 2


def test_learning_has_its_bounds(kernel, x):
    """Calls that keep changing neither fill memory nor stop the others from being quick."""
    for i in range(300):
        names = ["n", "f", "flag", "maybe"]
        random.Random(i).shuffle(names)
        given = {"n": 7, "f": 1.5, "flag": True, "maybe": None}
        kernel[(1,)](x, x, **{name: given[name] for name in names}, BLOCK=32)
    for _ in range(17):
        kernel[(1,)](x, x, 9, BLOCK=32)
    before = kernel._misses
    for _ in range(100):
        kernel[(1,)](x, x, 9, BLOCK=32)
    assert kernel._misses == before


def test_another_arrays_error_is_the_general_one(kernel, x):
    import torch

    for _ in range(3):
        kernel[(1,)](x, x, 7, BLOCK=32)
    with pytest.raises(Exception, match="meta") as failed:
        kernel[(1,)](x, torch.zeros(8, device="meta"), 7, BLOCK=32)
    with pytest.raises(type(failed.value), match="meta"):
        kernel._call_plain((1,), (x, torch.zeros(8, device="meta"), 7), {"BLOCK": 32})
    with pytest.raises(TypeError, match="is missing argument 'n'"):
        kernel[(1,)](x, x, BLOCK=32)


@pytest.mark.slow
def test_calls_are_quick_where_the_table_of_types_is_full(run_after_torch):
    # In a process of its own: the table is the process's, and this fills it.
    here = Path(__file__).parents[1] / "shared"
    code = f"""
        import ctypes, sys
        sys.path[:0] = [{str(here)!r}, {str(here.parents[1] / "launch")!r}]
        from recording import the_recorder
        driver = the_recorder(device_types=(1,), devices=1)
        fill = driver.kernel(4)
        for i in range(3000):
            fill[1, 1](type("S", (ctypes.Structure,), {{"_fields_": [("x", ctypes.c_int)]}})(i))
        import torch
        from quick_kernels import mixed
        from culaunch.triton import native
        x, kernel = torch.zeros(4096), native(mixed)
        for _ in range(3):
            kernel[(1,)](x, torch.nn.Parameter(x), 7, 1.5, True, None, BLOCK=32)
        assert kernel._misses == 1, kernel._misses
        assert not driver.defects
        print("done")
    """
    environment = {**os.environ, "CULAUNCH_DRIVER": "/recorder"}
    done = run_after_torch(["-c", textwrap.dedent(code)], env=environment)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_hook_is_seen_by_the_next_call(kernel, x, monkeypatch):
    from triton import knobs

    for _ in range(3):
        kernel[(1,)](x, x, 7, BLOCK=32)
    seen = []
    idle = knobs.runtime.launch_enter_hook
    monkeypatch.setattr(knobs.runtime, "launch_enter_hook", idle)  # as it is, and so afterwards
    for count in range(1, 100):  # often enough for Python to specialize the store
        knobs.runtime.launch_enter_hook = seen.append
        kernel[(1,)](x, x, 7, BLOCK=32)
        assert len(seen) == count
        knobs.runtime.launch_enter_hook = idle
        kernel[(1,)](x, x, 7, BLOCK=32)
        assert len(seen) == count


def test_a_global_is_seen_by_the_next_call(recorder, x, monkeypatch):
    import extra_kernels
    import triton.language as tl

    from culaunch.triton import native

    kernel = native(extra_kernels.with_global)
    for _ in range(3):
        kernel[(1,)](x, BLOCK=32)
    monkeypatch.setattr(extra_kernels, "unrelated", 1, raising=False)
    kernel[(1,)](x, BLOCK=32)
    monkeypatch.setattr(extra_kernels, "FACTOR", tl.constexpr(3))
    with pytest.raises(RuntimeError, match="FACTOR has changed"):
        kernel[(1,)](x, BLOCK=32)


@pytest.mark.slow
@pytest.mark.memory
def test_a_grid_function_may_call_and_clear(kernel, recorder, x):
    """A form is removed while a call uses it."""

    def grid(meta):
        kernel._clear()
        for n in range(5):
            kernel[(1,)](x, x, n, float(n), BLOCK=32)
        gc.collect()
        return (meta["n"],)

    for n in (3, 3, 3):
        kernel[grid](x, x, n, BLOCK=32)
        assert recorder.last.grid == (3, 1, 1)


@pytest.mark.slow
@pytest.mark.memory
def test_what_was_learned_is_freed(recorder, x):
    import quick_kernels

    from culaunch.triton import native

    kernel = native(quick_kernels.mixed)
    launcher = kernel[(1,)]
    for _ in range(3):
        launcher(x, x, 7, BLOCK=32)
    ((_, variant),) = kernel._compiled.loaded.values()
    before = sys.getrefcount(variant)
    kernel._clear()
    after = sys.getrefcount(variant)
    assert before - after == 2  # the key's, the form's
    result = launcher(x, x, 7, BLOCK=32)
    gone = weakref.ref(kernel)
    del kernel, launcher, result, variant
    gc.collect()
    assert gone() is None


def test_an_autotuned_call_is_quick(recorder):
    """For each key with the configuration that was chosen for it."""
    import torch
    import tutorials

    from culaunch.triton import native

    a = torch.zeros(64 * 64, dtype=torch.half)
    kernel = native(tutorials.autotuned())
    metas = []

    def grid(meta):
        metas.append(meta)
        return (1,)

    def call(m):
        kernel[grid](a, a, a, m, 16, 16, 16, 1, 16, 1, 16, 1, ACTIVATION="")
        return kernel.best_config

    first = {m: call(m) for m in (16, 32)}
    for m in (16, 32):
        call(m)
        before = kernel._misses
        metas.clear()
        assert call(m) is first[m]
        assert kernel._misses == before
        (meta,) = metas
        assert meta["BLOCK_M"] == first[m].kwargs["BLOCK_M"]
        quick = told(recorder)
        arguments = (a, a, a, m, 16, 16, 16, 1, 16, 1, 16, 1)
        kernel._call_plain(grid, arguments, {"ACTIVATION": ""})
        assert told(recorder) == quick
        assert list(metas[0].items()) == list(metas[1].items())


@pytest.mark.slow
@pytest.mark.memory
def test_a_grid_function_may_clear_what_was_tuned(recorder):
    import torch
    import tutorials

    from culaunch.triton import native

    a = torch.zeros(64 * 64, dtype=torch.half)
    kernel = native(tutorials.autotuned())

    def grid(meta):
        kernel._clear()
        kernel._compiled.loaded.clear()
        gc.collect()
        return (meta["M"],)

    for _ in range(2):  # found in the table, then quickly
        for first in (lambda meta: (1,), lambda meta: (2,), grid):
            kernel[first](a, a, a, 3, 16, 16, 16, 1, 16, 1, 16, 1, ACTIVATION="")
        assert recorder.last.grid == (3, 1, 1)
