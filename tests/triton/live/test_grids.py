"""A grid that is a function is asked only when something that it reads has changed."""

import sys
import types

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

ROWS = 2


@pytest.fixture
def kernel(recorder):
    import installed_kernels

    from culaunch.triton import native

    return native(installed_kernels.add)


@pytest.fixture
def launch(kernel, recorder):
    """Launch on a grid: give its numbers, and whether the function was called."""
    x = torch.zeros(256)

    def call(grid, n=256, how=kernel, **more):
        calls = []

        def profile(frame, event, _):
            if event == "call" and frame.f_code is grid.__code__:
                calls.append(1)

        more = {"BLOCK": 64, **more}
        if more["BLOCK"] is None:
            del more["BLOCK"]
        sys.setprofile(profile)
        try:
            how[grid](x, x, x, n, **more)
        finally:
            sys.setprofile(None)
        return recorder.last.grid, bool(calls)

    return call


def over(rows, *, with_global=False):
    if with_global:
        return lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]), rows * ROWS)
    return lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]), rows)


def test_it_is_asked_once_for_what_it_reads(launch):
    for rows, n, asked in [(1, 256, True), (1, 256, False), (2, 256, True), (1, 100, True)]:
        assert launch(over(rows), n) == ((triton.cdiv(n, 64), rows, 1), asked)
    for rows, n in [(1, 256), (2, 256), (1, 100), (1, 256)]:
        assert launch(over(rows), n) == ((triton.cdiv(n, 64), rows, 1), False)
    assert launch(over(1), 256, BLOCK=128) == ((2, 1, 1), True)
    assert launch(over(1), 256, BLOCK=128) == ((2, 1, 1), False)
    with pytest.raises(TypeError, match="a grid must be"):  # 1 was given before, and True is no int
        launch(over(True), 256, BLOCK=128)


def test_what_it_does_not_read_may_change(launch):
    grid = lambda meta: (4,)  # noqa: E731
    assert launch(grid, 1)[1]
    for n in (2, 3, 1000):
        assert launch(grid, n) == ((4, 1, 1), False)


def test_a_global_that_changes(launch, monkeypatch):
    assert launch(over(2, with_global=True)) == ((4, 4, 1), True)
    assert launch(over(2, with_global=True)) == ((4, 4, 1), False)
    monkeypatch.setitem(globals(), "ROWS", 3)
    assert launch(over(2, with_global=True)) == ((4, 6, 1), True)
    assert launch(over(2, with_global=True)) == ((4, 6, 1), False)
    code = over(2, with_global=True).__code__
    elsewhere = {"triton": triton, "ROWS": 5}
    cell = types.CellType(2)
    assert launch(types.FunctionType(code, elsewhere, "grid", (), (cell,)))[0] == (4, 10, 1)
    assert launch(over(2, with_global=True))[0] == (4, 6, 1)


def test_what_may_say_anything_is_asked_every_time(launch):
    x = torch.zeros(3)
    state = [1]
    grids = [
        lambda meta: (x.numel(),),
        lambda meta: (len(state),),
        lambda meta: (meta["x"].numel() // 64,),
        lambda meta: (4,) if meta.get("n") else (state[0],),
    ]
    for grid in grids:
        for _ in range(3):
            assert launch(grid)[1]
    state.append(2)
    assert launch(grids[1])[0] == (2, 1, 1)
    x.resize_(5)
    assert launch(grids[0])[0] == (5, 1, 1)


def test_a_cell_that_holds_something_else(launch):
    assert launch(over(2)) == ((4, 2, 1), True)

    class Two:
        calls = 0

        def __index__(self):
            Two.calls += 1
            return Two.calls

    two = Two()
    assert [launch(over(two)) for _ in range(2)] == [((4, 1, 1), True), ((4, 2, 1), True)]
    assert launch(over(2)) == ((4, 2, 1), False)


def test_a_chosen_constant(launch, recorder):
    import installed_kernels

    from culaunch.triton import native

    blocks = {"BLOCK": lambda args: 32 if args["n"] < 200 else 128}
    kernel = native(triton.heuristics(blocks)(installed_kernels.add))
    assert launch(over(1), 256, kernel, BLOCK=None)[0] == (2, 1, 1)
    for n, blocks in [(256, 2), (100, 4), (256, 2), (100, 4)]:
        found, _ = launch(over(1), n, kernel, BLOCK=None)
        assert found == (blocks, 1, 1)
    assert not launch(over(1), 100, kernel, BLOCK=None)[1]


def test_many_functions_and_many_answers(launch):
    for _ in range(2):
        for rows in range(1, 20):
            assert launch(over(rows))[0] == (4, rows, 1)
    for i in range(20):
        grid = eval(f"lambda meta: ({i + 1},)")
        assert launch(grid)[0] == (i + 1, 1, 1)


def test_it_is_compared_where_that_is_asked_for(launch, monkeypatch):
    monkeypatch.setenv("CULAUNCH_TRITON_CHECK", "1")
    import installed_kernels

    from culaunch.triton import native

    kernel = native(triton.heuristics({"BLOCK": lambda args: 64})(installed_kernels.add))
    for _ in range(10):
        assert launch(over(3), 256, kernel, BLOCK=None)[0] == (4, 3, 1)
    assert launch(over(3), 256, kernel, BLOCK=None)[1]
