"""Graphs as C code sees them in the emulated driver."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from emulator_internals import (
    NOTE_ARRAY,
    NOTE_LAUNCH,
    ConditionalType,
    GraphNodeType,
    LaunchAttribute,
    Result,
)

from culaunch._emulator.driver import conditional_nodes, graph_nodes

HANDLE, ADDRESS = ctypes.c_void_p, ctypes.c_ulonglong


def params_of(kernel, address, value, threads=4):
    """Make what a node of the kernel `add` launches; the pointers stay with it."""
    values = (ADDRESS(address), ctypes.c_uint(value))
    params = graph_nodes.KernelNodeParams(function=kernel, grid=(1, 1, 1), block=(threads, 1, 1))
    params.pointers = (HANDLE * 2)(*map(ctypes.addressof, values))
    params.params = ctypes.cast(params.pointers, ctypes.POINTER(HANDLE))
    params.values = values
    return params


@pytest.fixture
def words():
    # The middle of large memory, whose start may lie directly beside memory that is known.
    return np.zeros(1 << 18, np.uint32)[1 << 17 :]


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
    fill = graph_nodes.FillParams(target=memory, value=7, size=4, width=16, height=1)
    first = table.out("cuGraphAddMemsetNode", HANDLE, graph, None, 0, ctypes.addressof(fill), None)
    copy = graph_nodes.CopyParams(width=64, height=1, depth=1)
    copy.source.memory_type, copy.source.device = 2, memory
    copy.target.memory_type, copy.target.host = 1, words.ctypes.data
    after = (HANDLE * 1)(first)
    second = table.out(
        "cuGraphAddMemcpyNode", HANDLE, graph, after, 1, ctypes.addressof(copy), None
    )
    seen = []
    call = ctypes.CFUNCTYPE(None, HANDLE)(lambda data: seen.append((data, int(words[15]))))
    host = graph_nodes.HostParams(function=ctypes.cast(call, HANDLE), data=5)
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
    params = graph_nodes.KernelNodeParams()
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


COUNT_DOWN = """
.version 8.4
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry count_down(.param .u64 handle, .param .u64 at) {
  .reg .b64 %h, %p; .reg .b32 %v;
  ld.param.u64 %h, [handle]; ld.param.u64 %p, [at];
  ld.global.u32 %v, [%p]; sub.u32 %v, %v, 1; st.global.u32 [%p], %v;
  ld.global.u32 %v, [%p+4]; add.u32 %v, %v, 1; st.global.u32 [%p+4], %v;
  ld.global.u32 %v, [%p];
  { .param .b64 a; .param .b32 b; st.param.b64 [a], %h; st.param.b32 [b], %v;
    call.uni cudaGraphSetConditional, (a, b); }
  ret;
}
"""


class Conditions:
    """A graph of the table, with conditional nodes."""

    def __init__(self, table):
        self.table = table
        self.graph = table.out("cuGraphCreate", HANDLE, 0)

    def condition(self, value=1, flags=1):
        return self.table.out(
            "cuGraphConditionalHandleCreate", ADDRESS, self.graph, self.table.context, value, flags
        )

    def code(self, condition, kind, size, graph=None):
        params = graph_nodes.NodeParams(kind=GraphNodeType.CONDITIONAL)
        at = ctypes.addressof(params)
        self.given = conditional_nodes.ConditionalParams.from_address(
            at + graph_nodes.NodeParams.OTHERS
        )
        self.given.condition, self.given.kind, self.given.size = condition, kind, size
        node = HANDLE()
        return self.table(
            "cuGraphAddNode_v2", ctypes.byref(node), graph or self.graph, None, None, 0, at
        )

    def add(self, *args, **keywords):
        assert self.code(*args, **keywords) == 0
        return [
            HANDLE.from_address(self.given.bodies + 8 * index).value
            for index in range(self.given.size)
        ]

    def instantiate(self):
        return self.table.out("cuGraphInstantiateWithFlags", HANDLE, self.graph, 0)

    def refused(self):
        run = HANDLE()
        code = self.table("cuGraphInstantiateWithFlags", ctypes.byref(run), self.graph, 0)
        return code == Result.INVALID_VALUE


@pytest.fixture
def conditions(table):
    return Conditions(table)


def test_a_kernel_ends_a_loop(table, conditions):
    kernel = table.kernel(table.load(COUNT_DOWN), "count_down")
    memory = table.out("cuMemAlloc", ADDRESS, 64)
    values = (ctypes.c_uint * 2).from_address(memory)
    condition = conditions.condition(value=7)
    (body,) = conditions.add(condition, ConditionalType.WHILE, 1)
    numbers = (ADDRESS(condition), ADDRESS(memory))
    params = graph_nodes.KernelNodeParams(function=kernel, grid=(1, 1, 1), block=(1, 1, 1))
    pointers = (HANDLE * 2)(*map(ctypes.addressof, numbers))
    params.params = ctypes.cast(pointers, ctypes.POINTER(HANDLE))
    table.out("cuGraphAddKernelNode", HANDLE, body, None, 0, ctypes.addressof(params))
    run = conditions.instantiate()
    for turns in (4, 1, 3):  # the default, not what the launch before has left
        values[:] = turns, 0
        assert table("cuGraphLaunch", run, None) == 0
        assert list(values) == [0, turns]
    # Outside of the graph, it is no condition.
    assert table.launch(kernel, *numbers) == Result.LAUNCH_FAILED
    assert f"cudaGraphSetConditional got {condition:#x}" in table.text(Result.LAUNCH_FAILED)


@pytest.mark.parametrize(
    ("kind", "size"),
    [(ConditionalType.IF, 1), (ConditionalType.IF, 2), (ConditionalType.SWITCH, 3)],
)
@pytest.mark.parametrize("value", [0, 1, 2, 3])
def test_bodies_by_the_value(table, conditions, kind, size, value):
    memory = table.out("cuMemAlloc", ADDRESS, 64)
    condition = conditions.condition(value=value)
    for number, body in enumerate(conditions.add(condition, kind, size)):
        fill = graph_nodes.FillParams(target=memory, value=number + 1, size=4, width=1, height=1)
        at = ctypes.addressof(fill)
        table.out("cuGraphAddMemsetNode", HANDLE, body, None, 0, at, None)
    assert table("cuGraphLaunch", conditions.instantiate(), None) == 0
    chosen = value if kind == ConditionalType.SWITCH else int(value == 0)
    expected = chosen + 1 if chosen < size else 0
    assert ctypes.c_uint.from_address(memory).value == expected


def test_conditions_that_cuda_refuses(table, conditions):
    condition = conditions.condition()
    assert conditions.refused()  # it controls no node
    other = Conditions(table)
    assert other.code(condition, ConditionalType.IF, 1) == Result.INVALID_VALUE
    for kind, size in ((0, 0), (0, 3), (1, 2), (2, 0), (3, 1)):
        assert conditions.code(condition, kind, size) == Result.INVALID_VALUE
    (body,) = conditions.add(condition, ConditionalType.IF, 1)
    assert conditions.code(condition, ConditionalType.IF, 1) == Result.INVALID_VALUE
    run = conditions.instantiate()
    clone = HANDLE()
    assert table("cuGraphClone", ctypes.byref(clone), conditions.graph) == Result.INVALID_VALUE
    child = ctypes.byref(clone), other.graph, None, 0, conditions.graph
    assert table("cuGraphAddChildGraphNode", *child) == Result.INVALID_VALUE
    inner = conditions.condition(flags=0)  # not set by anything
    conditions.add(inner, ConditionalType.IF, 1, graph=body)
    assert table("cuGraphLaunch", run, None) == 0  # which has no such node
    assert conditions.refused()  # there can be one executable graph at a time
    assert table("cuGraphExecDestroy", run) == 0
    run = conditions.instantiate()
    assert table("cuGraphLaunch", run, None) == Result.INVALID_VALUE
    assert table("cuGraphExecDestroy", run) == 0
    host = graph_nodes.HostParams()
    table.out("cuGraphAddHostNode", HANDLE, body, None, 0, ctypes.addressof(host))
    assert conditions.refused()
    assert table("cuGraphDestroy", conditions.graph) == 0
    assert table("cuGraphAddHostNode", ctypes.byref(clone), body, None, 0, 0) != 0
