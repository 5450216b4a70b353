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
from graph_kernels import PTX, USUAL

import culaunch as cl


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
