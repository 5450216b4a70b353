"""Graphs as C code sees them in the emulated driver."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from culaunch._base.cuda import GraphNodeType, LaunchAttribute, Result
from culaunch._emulator.driver.c_types import NOTE_ARRAY, NOTE_LAUNCH
from culaunch._emulator.driver.graph_nodes import (
    CopyParams,
    FillParams,
    HostParams,
    KernelNodeParams,
)

HANDLE, ADDRESS = ctypes.c_void_p, ctypes.c_ulonglong


def params_of(kernel, address, value, threads=4):
    """Make what a node of the kernel `add` launches; the pointers stay with it."""
    values = (ADDRESS(address), ctypes.c_uint(value))
    params = KernelNodeParams(function=kernel, grid=(1, 1, 1), block=(threads, 1, 1))
    params.pointers = (HANDLE * 2)(*map(ctypes.addressof, values))
    params.params = ctypes.cast(params.pointers, ctypes.POINTER(HANDLE))
    params.values = values
    return params


@pytest.fixture
def words():
    return np.zeros(1 << 17, np.uint32)  # so large that it is near nothing else


@pytest.fixture
def add_node(table, library):
    """Add a node of the kernel `add` that writes a value to an array that was reported to it."""
    kernel = table.kernel(library, "add")

    def add(graph, array, value, *dependencies, threads=4):
        note = table.functions["note_array"]
        note(None, 0, NOTE_LAUNCH)
        note(array.ctypes.data, array.nbytes, NOTE_ARRAY)
        params = params_of(kernel, array.ctypes.data, value, threads)
        before = (HANDLE * len(dependencies))(*dependencies)
        return table.out(
            "cuGraphAddKernelNode",
            HANDLE,
            graph,
            before,
            len(dependencies),
            ctypes.addressof(params),
        )

    return add


def test_kernel_nodes_run_in_the_order_of_their_dependencies(table, library, words, add_node):
    graph = table.out("cuGraphCreate", HANDLE, 0)
    late = add_node(graph, words, 1, threads=4)
    early = add_node(graph, words, 2, threads=8)
    pair = (HANDLE * 1)(early), (HANDLE * 1)(late)
    assert table("cuGraphAddDependencies_v2", graph, *pair, None, 1) == 0
    run = table.out("cuGraphInstantiateWithFlags", HANDLE, graph, 0)
    assert words[0] == 0  # nothing has run
    for _ in range(2):
        assert table("cuGraphLaunch", run, None) == 0
        assert words[:9].tolist() == [1] * 4 + [2] * 4 + [0]
        words[:] = 0
    # The executable graph has its own copy.
    other = params_of(table.kernel(library, "add"), words.ctypes.data, 9)
    table.functions["note_array"](None, 0, NOTE_LAUNCH)
    table.functions["note_array"](words.ctypes.data, words.nbytes, NOTE_ARRAY)
    assert table("cuGraphExecKernelNodeSetParams", run, late, ctypes.addressof(other)) == 0
    assert table("cuGraphLaunch", run, None) == 0
    assert words[0] == 9
    second = table.out("cuGraphInstantiateWithFlags", HANDLE, graph, 0)
    assert table("cuGraphLaunch", second, None) == 0
    assert words[0] == 1


def test_an_array_that_a_node_was_not_told_of_is_unknown(table, library, words):
    params = params_of(table.kernel(library, "add"), words.ctypes.data, 1)
    graph = table.out("cuGraphCreate", HANDLE, 0)
    table.out("cuGraphAddKernelNode", HANDLE, graph, None, 0, ctypes.addressof(params))
    run = table.out("cuGraphInstantiateWithFlags", HANDLE, graph, 0)
    assert table("cuGraphLaunch", run, None) == Result.ILLEGAL_ADDRESS
    assert "add" in table.text(Result.ILLEGAL_ADDRESS)


def test_other_nodes(table, words):
    graph = table.out("cuGraphCreate", HANDLE, 0)
    memory = table.out("cuMemAlloc", ADDRESS, 64)
    fill = FillParams(target=memory, value=7, size=4, width=16, height=1)
    first = table.out("cuGraphAddMemsetNode", HANDLE, graph, None, 0, ctypes.addressof(fill), None)
    copy = CopyParams(width=64, height=1, depth=1)
    copy.source.memory_type, copy.source.device = 2, memory
    copy.target.memory_type, copy.target.host = 1, words.ctypes.data
    after = (HANDLE * 1)(first)
    second = table.out(
        "cuGraphAddMemcpyNode", HANDLE, graph, after, 1, ctypes.addressof(copy), None
    )
    seen = []
    call = ctypes.CFUNCTYPE(None, HANDLE)(lambda data: seen.append((data, int(words[15]))))
    host = HostParams(function=ctypes.cast(call, HANDLE), data=5)
    after = (HANDLE * 1)(second)
    table.out("cuGraphAddHostNode", HANDLE, graph, after, 1, ctypes.addressof(host))
    outer = table.out("cuGraphCreate", HANDLE, 0)
    child = table.out("cuGraphAddChildGraphNode", HANDLE, outer, None, 0, graph)
    run = table.out("cuGraphInstantiateWithFlags", HANDLE, outer, 0)
    assert table("cuGraphLaunch", run, None) == 0
    assert words[:17].tolist() == [7] * 16 + [0]
    assert seen == [(5, 7)]
    assert table("cuGraphNodeSetEnabled", run, child, 0) == Result.INVALID_VALUE
    assert table("cuGraphLaunch", run, None) == 0
    assert len(seen) == 2


def test_what_a_graph_has(table, library, words, add_node, tmp_path):
    graph = table.out("cuGraphCreate", HANDLE, 0)
    first = add_node(graph, words, 1)
    second = add_node(graph, words, 2, first)
    count = ctypes.c_size_t()
    assert table("cuGraphGetNodes", graph, None, ctypes.byref(count)) == 0
    nodes = (HANDLE * 2)()
    assert table("cuGraphGetNodes", graph, nodes, ctypes.byref(count)) == 0
    assert list(nodes) == [first, second]
    kind = ctypes.c_int(5)
    assert table("cuGraphNodeGetType", second, ctypes.byref(kind)) == 0
    assert kind.value == GraphNodeType.KERNEL
    early, late = (HANDLE * 2)(), (HANDLE * 2)()
    assert table("cuGraphGetEdges_v2", graph, early, late, None, ctypes.byref(count)) == 0
    assert (count.value, early[0], late[0]) == (1, first, second)
    params = KernelNodeParams()
    assert table("cuGraphKernelNodeGetParams", second, ctypes.addressof(params)) == 0
    assert ctypes.c_uint.from_address(params.params[1]).value == 2
    assert tuple(params.block) == (4, 1, 1)
    path = tmp_path / "graph.dot"
    assert table("cuGraphDebugDotPrint", graph, str(path).encode(), 0) == 0
    assert path.read_text().count('label="add"') == 2


@pytest.mark.parametrize("attribute", list(LaunchAttribute))
def test_attributes_of_a_node(table, words, add_node, attribute):
    graph = table.out("cuGraphCreate", HANDLE, 0)
    node = add_node(graph, words, 1)
    value = ctypes.create_string_buffer(b"\1", 64)
    code = table("cuGraphKernelNodeSetAttribute", node, attribute, ctypes.addressof(value))
    refused = attribute == LaunchAttribute.PROGRAMMATIC_STREAM_SERIALIZATION
    assert code == (Result.INVALID_VALUE if refused else 0)


def test_a_graph_of_an_unloaded_module_runs_nothing(table, library, words, add_node):
    graph = table.out("cuGraphCreate", HANDLE, 0)
    add_node(graph, words, 1)
    run = table.out("cuGraphInstantiateWithFlags", HANDLE, graph, 0)
    assert table("cuLibraryUnload", library) == 0
    assert table("cuGraphLaunch", run, None) == Result.INVALID_HANDLE
    assert table("cuGraphExecDestroy", run) == 0
    assert table("cuGraphLaunch", run, None) == Result.INVALID_HANDLE
    assert words[0] == 0
