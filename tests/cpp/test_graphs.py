"""Launches as executable graphs, over the fake driver: what it was asked, and what was launched."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time

import pytest

import culaunch as cl
from culaunch import _core

PTX = """
.version 8.4
.target sm_90
.address_size 64
.visible .entry one(.param .u64 one_0, .param .u32 one_1) { ret; }
.visible .entry two(.param .u64 two_0, .param .u32 two_1) { ret; }
"""
USUAL = 8  # calls before a graph is made


class Fake:
    """The fake driver of this process."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.fake_driver_log.restype = ctypes.c_char_p
        self.library.fake_driver_calls.restype = ctypes.c_uint64
        self.library.fake_driver_clear()

    def lines(self):
        text = self.library.fake_driver_log().decode()
        return [line for line in text.splitlines() if line.startswith("launch ")]

    def calls(self, name):
        return self.library.fake_driver_calls(name.encode())

    def fail(self, name, code):
        self.library.fake_driver_fail(name.encode(), code)

    def clear(self):
        self.library.fake_driver_clear()

    def values(self):
        """The second argument of each launch, an int of 32 bits."""
        return [int.from_bytes(bytes.fromhex(line.split()[-1]), "little") for line in self.lines()]


@pytest.fixture
def fake(fake_driver, monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", str(fake_driver))
    monkeypatch.setenv("CULAUNCH_GRAPHS", "auto")
    cl.graph.set_graphs(True, limit=256)
    driver = _core.current_driver()
    driver.push_device(0)  # a default stream belongs to the current context
    yield Fake(fake_driver)
    driver.pop_device()
    cl.graph.set_graphs("auto", limit=256)


@pytest.fixture
def module(fake):
    with cl.load(PTX.encode()) as module:
        fake.clear()
        yield module


def test_a_driver_that_is_no_gpus_keeps_plain_launches(fake, module):
    cl.graph.set_graphs("auto")
    launcher = module["one"][2, 32]
    for i in range(3 * USUAL):
        launcher(0, i)
    assert fake.calls("cuLaunchKernelEx") == 3 * USUAL
    assert fake.calls("cuStreamIsCapturing") == 0
    assert not cl.graph.graph_status().is_on


def test_a_launcher_is_a_graph_of_one_node(fake, module):
    launcher = module["one"][2, 32]
    for i in range(5):
        launcher(7, i)
    # The first launch on a device loads the kernel.
    assert fake.calls("cuLaunchKernelEx") == 1
    assert (fake.calls("cuGraphInstantiateWithFlags"), fake.calls("cuGraphLaunch")) == (1, 4)
    assert fake.values() == [0, 1, 2, 3, 4]
    assert len({line.rsplit(" ", 1)[0] for line in fake.lines()}) == 1
    assert cl.graph.graph_status().count == 1


def test_only_what_changed_is_set(fake, module):
    launcher = module["one"][2, 32]
    for i in (1, 1, 2, 2, 2, 3):
        launcher(7, i)
    assert fake.calls("cuGraphExecKernelNodeSetParams") == 2
    assert fake.values() == [1, 1, 2, 2, 2, 3]


def test_off(fake, module):
    launcher = module["one"][2, 32]
    for i in range(5):
        launcher(7, i)
    cl.graph.set_graphs(False)
    assert str(cl.graph.graph_status()) == "off: switched off"
    assert fake.calls("cuGraphExecDestroy") == fake.calls("cuGraphInstantiateWithFlags") == 1
    launcher(7, 9)
    assert fake.calls("cuGraphLaunch") == 4
    assert fake.values()[-1] == 9


def test_each_grid_and_each_stream_has_its_own(fake, module):
    kernel = module["one"]
    streams = [cl.Stream(), cl.Stream()]
    for i in range(4):
        for grid in (1, 2):
            for stream in streams:
                kernel[grid, 32, 0, stream](7, i)
    assert fake.calls("cuGraphInstantiateWithFlags") == 4
    assert fake.calls("cuLaunchKernelEx") == 1
    assert [line.split()[3] for line in fake.lines()[:4]] == [
        "grid=1,1,1", "grid=1,1,1", "grid=2,1,1", "grid=2,1,1",
    ]  # fmt: skip
    assert all("stream=own" in line for line in fake.lines())


def test_a_stream_that_has_the_handle_of_another_is_another(fake, module):
    kernel = module["one"]
    for _ in range(3):
        stream = cl.Stream()
        handle = stream.handle
        kernel[1, 32, 0, stream](7, 1)
        kernel[1, 32, 0, stream](7, 1)
        del stream
        gc.collect()
        assert cl.Stream().handle == handle  # the fake driver's way
    assert fake.calls("cuGraphInstantiateWithFlags") == 3


def test_under_capture_launches_are_nodes_of_that_capture(fake, module):
    stream = cl.Stream()
    launcher = module["one"][1, 32, 0, stream]
    for i in range(3):
        launcher(7, i)
    handle = ctypes.c_void_p(stream.handle)
    assert fake.library.cuStreamBeginCapture_v2(handle, 0) == 0
    before = len(fake.lines())
    launcher(7, 10)
    launcher(7, 11)
    graph = ctypes.c_void_p()
    assert fake.library.cuStreamEndCapture(handle, ctypes.byref(graph)) == 0
    assert len(fake.lines()) == before
    count = ctypes.c_size_t()
    fake.library.cuGraphGetNodes(graph, None, ctypes.byref(count))
    nodes = (ctypes.c_void_p * count.value)()
    fake.library.cuGraphGetNodes(graph, nodes, ctypes.byref(count))
    kinds = []
    for node in nodes:
        kind = ctypes.c_int(-1)
        fake.library.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind))
        kinds.append(kind.value)
    assert kinds == [0, 0]  # kernels
    launcher(7, 12)
    assert fake.values()[-1] == 12


@pytest.mark.parametrize(
    "options",
    [{"cluster": 1}, {"cooperative": True}, {"programmatic": True}, {"priority": -1}],
)
def test_launches_with_attributes_stay_plain(fake, module, options):
    launcher = module["one"].configure(grid=2, block=32, **options)
    for i in range(4):
        launcher(7, i)
    assert fake.calls("cuLaunchKernelEx") == 4
    assert fake.calls("cuGraphLaunch") == 0


@pytest.mark.parametrize(
    "function",
    [
        "cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiateWithFlags", "cuGraphLaunch",
        "cuGraphExecKernelNodeSetParams", "cuStreamGetId", "cuStreamIsCapturing",
    ],
)  # fmt: skip
def test_what_graphs_cannot_do_is_launched_plainly(fake, module, function):
    launcher = module["one"][2, 32]
    launcher(7, 0)
    launcher(7, 1)
    fake.fail(function, 801)
    for i in range(2, 6):
        launcher(7, i)
    assert fake.values() == list(range(6))


def test_an_error_is_that_of_a_plain_launch(fake, module):
    launcher = module["one"][2, 32]
    for i in range(3):
        launcher(7, i)
    fake.fail("cuGraphLaunch", 700)
    fake.fail("cuLaunchKernelEx", 700)
    with pytest.raises(cl.DriverError, match=r"one.*CUDA_ERROR_ILLEGAL_ADDRESS"):
        launcher(7, 4)
    launcher(7, 5)
    assert fake.values() == [0, 1, 2, 5]


def test_no_graph_outlives_its_module(fake):
    with cl.load(PTX.encode()) as module:
        for i in range(3):
            module["one"][1, 32](7, i)
            module["two"][1, 32](7, i)
        assert cl.graph.graph_status().count == 2
        fake.clear()
    assert fake.calls("cuGraphExecDestroy") == 2
    assert cl.graph.graph_status().count == 0
    with pytest.raises(ValueError, match="unloaded"):
        module["one"][1, 32](7, 1)


def test_the_number_of_graphs_is_bounded(fake, module):
    cl.graph.set_graphs(True, limit=3)
    kernels = [module["one"][grid, 32] for grid in range(1, 6)]
    for launcher in kernels:
        launcher(7, 0)
        launcher(7, 0)
    assert cl.graph.graph_status().count == 3
    # Those that are used are not taken by others that come in turn.
    fake.clear()
    for i in range(100):
        for launcher in kernels:
            launcher(7, i)
    assert cl.graph.graph_status().count == 3
    assert fake.calls("cuGraphInstantiateWithFlags") <= 2
    assert fake.values() == [i for i in range(100) for _ in kernels]


def test_one_that_is_used_no_more_gives_way(fake, module):
    cl.graph.set_graphs(True, limit=1)
    other, launcher = module["two"][1, 32], module["one"][1, 32]
    for _ in range(3):
        other(7, 0)
    for _ in range(2):
        for i in range(300):  # so many that it asks for room after the second
            launcher(7, i)
        time.sleep(1.1)
    assert fake.calls("cuGraphExecDestroy") == 1
    assert cl.graph.graph_status().count == 1
    fake.clear()
    launcher(7, 1)
    other(7, 2)
    assert (fake.calls("cuGraphLaunch"), fake.calls("cuLaunchKernelEx")) == (1, 1)


def test_kernels_in_turn_beyond_the_limit_cost_what_plain_launches_do(fake):
    """No graph is made again, and kernels without one do not even ask about their stream."""
    kernels, limit, turns = 40, 8, 120
    entries = "".join(
        f".visible .entry k{i}(.param .u64 k{i}_0, .param .u32 k{i}_1) {{ ret; }}\n"
        for i in range(kernels)
    )
    cl.graph.set_graphs(True, limit=limit)
    with cl.load((".version 8.4\n.target sm_90\n.address_size 64\n" + entries).encode()) as module:
        launchers = [module[f"k{i}"][1, 32] for i in range(kernels)]
        fake.clear()
        for i in range(turns):
            for launcher in launchers:
                launcher(7, i)
        assert fake.values() == [i for i in range(turns) for _ in launchers]
        assert fake.calls("cuGraphInstantiateWithFlags") == limit
        assert fake.calls("cuGraphExecDestroy") == 0
        # Every launch of a graph asks; the others asked 4 times: after 16, 32 and 64 calls, too.
        graphs = fake.calls("cuGraphLaunch")
        assert graphs == limit * (turns - 1)
        assert fake.calls("cuStreamGetId") - graphs <= 4 * (kernels - limit)


def test_threads_never_share_a_graph_at_once(fake, module):
    launcher = module["one"][1, 32]
    launcher(7, 0)
    failures = []

    def run(first):
        try:
            for i in range(first, first + 300):
                launcher(7, i)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=run, args=(1000 * t,)) for t in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    expected = [0, *(1000 * t + i for t in range(1, 9) for i in range(300))]
    assert sorted(fake.values()) == expected
    for t in range(1, 9):  # each thread's launches stay in their order
        own = [v for v in fake.values() if v // 1000 == t]
        assert own == sorted(own)


def test_a_thread_that_never_had_a_context_uses_a_graph(fake, module):
    launcher = module["one"][1, 32, 0, cl.Stream()]
    for i in range(3):
        launcher(7, i)
    plain = fake.calls("cuLaunchKernelEx")
    thread = threading.Thread(target=lambda: [launcher(7, i) for i in range(3, 6)])
    thread.start()
    thread.join()
    assert fake.values() == list(range(6))
    assert fake.calls("cuLaunchKernelEx") == plain


# ---- functions


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
    with pytest.raises(cl.DriverError, match=r"test_graphs.py:\d+: cannot launch one"):
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


def test_calls_without_number_hold_no_memory(fake, module):
    launcher = module["one"][1, 32]
    for i in range(100):
        launcher(7, i)
    made = fake.calls("cuGraphCreate")
    cl.graph.set_graphs(True)
    for i in range(1000):
        launcher(7, i)
    assert fake.calls("cuGraphCreate") == made + 1
    assert fake.calls("cuGraphCreate") - fake.calls("cuGraphDestroy") == 1


def test_a_choice_that_is_none():
    with pytest.raises(ValueError, match=r'mode must be True, False, "1", "0" or "auto" \(got 2\)'):
        cl.graph.set_graphs(2)
    with pytest.raises(ValueError, match=r"limit must be from 0 to 2\^31 - 1 \(got -1\)"):
        cl.graph.set_graphs(True, limit=-1)


def test_a_profile_sees_each_launch_alone_and_graphs_go_on_after_it(fake):
    kernel = cl.load(PTX.encode()).kernel("one", signature="void* p, int n")
    launcher = kernel[1, 32]
    for i in range(3):
        launcher(0, i)
    graphs = fake.calls("cuGraphLaunch")
    assert graphs > 0
    fake.clear()
    with cl.profile.launches() as profile:
        for i in range(3):
            launcher(0, i)
    assert fake.values() == [0, 1, 2]
    assert fake.calls("cuGraphLaunch") == 0
    assert [(one.name, one.state) for one in profile.launches] == [("one", "timed")] * 3
    assert cl.graph.graph_status().is_on
    launcher(0, 7)
    assert fake.calls("cuGraphLaunch") == 1
    assert fake.values() == [0, 1, 2, 7]


OLD = """
import culaunch as cl
graph = cl.Graph()
for method in ("if_then", "while_loop", "if_else", "switch"):
    try:
        getattr(graph, method)(graph.condition(default=0), *([2] if method == "switch" else []))
        print(method)
    except ValueError as error:
        print(error)
"""
REFUSAL = (
    "adding a conditional node failed: else and switch need a driver for CUDA 12.8 or newer (got "
    "one for CUDA 12.7): use conditional nodes with one body, or update the driver"
)


@pytest.mark.parametrize("version", ["12070", "12080"])
def test_old_drivers_are_named(fake_driver, version):
    environment = {
        **os.environ, "CULAUNCH_DRIVER": str(fake_driver), "FAKE_DRIVER_VERSION": version
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", OLD], env=environment, capture_output=True, text=True, check=True
    )
    others = [REFUSAL] * 2 if version == "12070" else ["if_else", "switch"]
    assert done.stdout.splitlines() == ["if_then", "while_loop", *others]
