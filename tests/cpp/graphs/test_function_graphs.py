"""The launches of a function as one executable graph, over the fake driver."""

from __future__ import annotations

import threading

import pytest
from graph_kernels import PTX

import culaunch as cl


@pytest.fixture
def both(module):
    torch = pytest.importorskip("torch")

    @cl.function
    def both(x, n: int):
        y = cl.empty_like(x)
        module["one"][n, 32](x, n)
        module["two"][n + 1, 32](y, n)
        return y

    return both, torch.zeros(8)


def test_a_function_of_two_launches_is_one_graph(fake, both):
    function, x = both
    for n in (1, 1, 1, 2, 3):
        y = function(x, n)
        assert y.shape == (8,)
    kernels = [line.split()[1] for line in fake.lines()]
    assert kernels == ["one", "two"] * 5
    assert fake.values() == [1, 1, 1, 1, 1, 1, 2, 2, 3, 3]
    grids = [line.split()[3] for line in fake.lines()]
    assert grids[-2:] == ["grid=3,1,1", "grid=4,1,1"]
    # A call prepares its needs on a device before its first launch.
    assert fake.calls("cuGraphLaunch") == 5
    assert fake.calls("cuGraphExecKernelNodeSetParams") <= 6
    assert fake.calls("cuLaunchKernelEx") == 0
    addresses = [line.split()[-2] for line in fake.lines()]
    assert len(set(addresses[::2])) == 1
    assert addresses[-1] == y.data_ptr().to_bytes(8, "little").hex()


def test_a_function_whose_graph_fails_launches_plainly(fake, both):
    function, x = both
    for n in (1, 1):
        function(x, n)
    for name in ("cuGraphLaunch", "cuGraphExecKernelNodeSetParams"):
        fake.fail(name, 801)
        function(x, 5)
    assert [line.split()[1] for line in fake.lines()] == ["one", "two"] * 4
    function(x, 1)
    fake.fail("cuLaunchKernelEx", 700)
    fake.fail("cuGraphLaunch", 700)
    with pytest.raises(cl.DriverError, match=r"test_function_graphs.py:\d+: cannot launch one"):
        function(x, 1)


@pytest.fixture
def chain(module):
    """Return a function of four launches. Two depend on a number, and one on a float."""
    torch = pytest.importorskip("torch")
    one, two = module["one"], module["two"]

    @cl.function
    def chain(x, y, n: int, a: float):
        one[1, 32](x, n)
        two[1, 32](x, 7)
        if n > 100:
            one[3, 32](y, 9)
        two[n + 1, 32](y, n * 2)
        one[1, 32](x, int(a))

    return chain, torch.zeros(8), torch.zeros(8)


def test_a_number_that_changes_sets_only_the_nodes_that_it_is_in(fake, chain):
    function, x, y = chain
    for _ in range(3):
        function(x, y, 1, 0.5)
    fake.clear()
    set_, launched = "cuGraphExecKernelNodeSetParams", "cuGraphLaunch"
    function(x, y, 1, 0.5)
    assert (fake.calls(set_), fake.calls(launched)) == (0, 1)
    function(x, y, 2, 0.5)
    assert (fake.calls(set_), fake.calls(launched)) == (2, 2)
    function(x, y, 2, 4.5)
    assert (fake.calls(set_), fake.calls(launched)) == (3, 3)
    function(x, y, 2, 4.75)  # the same int
    assert (fake.calls(set_), fake.calls(launched)) == (3, 4)
    function(y, x, 2, 4.75)  # all have another array
    assert (fake.calls(set_), fake.calls(launched)) == (7, 5)
    function(x, y, 3, 5.0)
    assert (fake.calls(set_), fake.calls(launched)) == (11, 6)
    assert fake.values() == [
        1, 7, 2, 0,
        2, 7, 4, 0,
        2, 7, 4, 4,
        2, 7, 4, 4,
        2, 7, 4, 4,
        3, 7, 6, 5,
    ]  # fmt: skip
    grids = [line.split()[3] for line in fake.lines()]
    assert grids[2::4] == [f"grid={n + 1},1,1" for n in (1, 2, 2, 2, 2, 3)]
    arrays = [line.split()[-2] for line in fake.lines()]
    first, second = (one.data_ptr().to_bytes(8, "little").hex() for one in (x, y))
    usual = [first, first, second, first]
    assert arrays == [*usual * 4, second, second, first, second, *usual]


def test_a_number_that_leads_elsewhere_or_nowhere(fake, chain):
    function, x, y = chain
    for n in (1, 2, 3, 101, 102, 5, 103, 6):
        fake.clear()
        function(x, y, n, 1.0)
        assert fake.values() == [n, 7, *([9] if n > 100 else []), 2 * n, 1]
    for wrong, error in ((-1, "grid"), (1 << 40, "n"), (-2, "grid")):
        fake.clear()
        with pytest.raises((ValueError, OverflowError), match=error):
            function(x, y, wrong, 1.0)
        with pytest.raises((ValueError, OverflowError)):
            function(x, y, 4, float("nan"))
        assert fake.lines() == []
        function(x, y, 4, 2.0)
        assert fake.values() == [4, 7, 8, 2]


def test_numbers_that_change_in_two_streams_and_threads(fake, chain):
    torch = pytest.importorskip("torch")
    function, *_ = chain
    own = [(torch.zeros(8), torch.zeros(8)) for _ in range(4)]
    failures = []

    def run(t):
        try:
            for i in range(200):
                function(*own[t], 1 + (i * (t + 1)) % 90, float(t))
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run, args=(t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    lines = [line.split() for line in fake.lines()]
    for t in range(4):
        address = own[t][0].data_ptr().to_bytes(8, "little").hex()
        firsts = [
            int.from_bytes(bytes.fromhex(line[-1]), "little")
            for line in lines
            if line[-2] == address
        ]
        expected = [v for i in range(200) for v in (1 + (i * (t + 1)) % 90, 7, t)]
        assert firsts == expected


def test_a_functions_graph_goes_with_either_module(fake):
    torch = pytest.importorskip("torch")
    first, second = cl.load(PTX.encode()), cl.load(PTX.encode())

    @cl.function
    def both(x):
        first["one"][1, 32](x, 1)
        second["two"][1, 32](x, 2)

    x = torch.zeros(8)
    for _ in range(3):
        both(x)
    assert cl.graph.graph_status().count == 1
    second.unload()
    assert cl.graph.graph_status().count == 0
    first.unload()
