"""Conditional nodes on the emulator: their values, their drawings, and what is refused."""

from __future__ import annotations

import gc
import re
import weakref
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from conditional_programs import PROGRAMS, SOURCE, Kernels, numbers, run

import culaunch as cl


@pytest.fixture
def kernels(emulated):
    return Kernels(cl.compile(SOURCE, relocatable=True))


@pytest.fixture
def graph(emulated):
    return cl.Graph()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_values(kernels, program):
    program(kernels)


def test_a_condition_is_an_int(graph):
    condition = graph.condition(default=3)
    assert condition == int(condition) > 0
    assert (condition.graph, condition.default) == (graph, 3)
    assert repr(condition) == f"<culaunch.graph.GraphCondition {int(condition):#x}, default 3>"
    assert graph.if_then(condition).condition().graph is graph


@pytest.mark.parametrize(
    ("default", "error", "message"),
    [
        (True, TypeError, "default must be an int or None (got True)"),
        (1.0, TypeError, "default must be an int or None (got 1.0)"),
        (-1, ValueError, "default must be from 0 to 4294967295 (got -1)"),
        (2**32, ValueError, "default must be from 0 to 4294967295 (got 4294967296)"),
    ],
)
def test_a_default_that_does_not_fit(graph, default, error, message):
    with pytest.raises(error, match=re.escape(message)):
        graph.condition(default=default)


@pytest.mark.parametrize("method", ["if_then", "if_else", "while_loop", "switch"])
def test_a_condition_that_does_not_fit(graph, method):
    def add(condition):
        return getattr(graph, method)(condition, *([2] if method == "switch" else []))

    with pytest.raises(TypeError, match=r"condition must be a GraphCondition \(got 5\)"):
        add(5)
    with pytest.raises(ValueError, match=r"condition must be one of this graph .* of another"):
        add(cl.Graph().condition(default=1))
    condition = graph.condition(default=0)
    add(condition)
    with pytest.raises(ValueError, match="the condition controls another node"):
        add(condition)
    assert len(graph) == 1
    graph.launch()


@pytest.mark.parametrize(("count", "error"), [(0, ValueError), (True, TypeError), ("2", TypeError)])
def test_a_switch_without_bodies(graph, count, error):
    with pytest.raises(error, match="count must be"):
        graph.switch(graph.condition(), count)


def test_objects_that_only_a_graph_makes(emulated):
    with pytest.raises(TypeError, match=r"graph\.condition\(\) returns one"):
        cl.graph.GraphCondition(5)
    with pytest.raises(TypeError, match=r"graph\.if_then and its like return one"):
        cl.graph.GraphBody()


def test_a_condition_that_controls_nothing(kernels, graph):
    graph.condition(default=1)
    with pytest.raises(ValueError, match="a condition of the graph controls no node"):
        graph.launch()


def test_a_condition_that_nothing_has_set(kernels, graph):
    graph.if_then(graph.condition())
    with pytest.raises(cl.CulaunchError, match="without a default was not set before its node"):
        graph.launch()


def test_a_kernel_sets_only_conditions_of_the_graph_that_runs(kernels, graph):
    x = numbers(1, 0)
    other = cl.Graph().condition(default=1)
    graph.while_loop(graph.condition(default=1)).call(kernels.count_down, other, x)
    with pytest.raises(cl.CulaunchError, match="not a condition of the graph that runs"):
        graph.launch()
    cl.testing.reset_emulator()


ADD = {
    "a host function": lambda graph: graph.host(int),
    "the record of an event": lambda graph: graph.record(cl.Event()),
    "the wait for an event": lambda graph: graph.wait(cl.Event()),
}


@pytest.mark.parametrize("name", ADD)
def test_a_body_has_only_the_nodes_that_cuda_allows(kernels, graph, name):
    body = graph.if_then(graph.condition(default=1))
    with pytest.raises(ValueError, match=rf"of a conditional node can have .*got {name}"):
        ADD[name](body)
    child = cl.Graph()
    ADD[name](child)
    with pytest.raises(ValueError, match=rf"adding a graph failed: .*got {name}"):
        body.graph(child)
    outer = cl.Graph()
    outer.graph(child)
    with pytest.raises(ValueError, match=rf"got {name}"):
        body.graph(outer)
    fit = cl.Graph()
    fit.join()
    node = body.graph(fit)
    with pytest.raises(ValueError, match=rf"got {name}"):
        node.update(child)
    assert len(body) == 1
    graph.launch()


def test_an_event_in_the_block_of_a_body(graph):
    event = cl.Event()
    with (
        graph.if_then(graph.condition(default=1)),
        pytest.raises(ValueError, match="got the record of an event"),
    ):
        event.record(0)
    graph.launch()


def test_graphs_with_conditional_nodes_stay_where_they_are(graph):
    body = graph.if_then(graph.condition(default=1))
    outer = cl.Graph()
    with pytest.raises(ValueError, match="no conditional nodes in a graph that is a node"):
        outer.graph(graph)
    with pytest.raises(ValueError, match="a body of a conditional node, which stays in its graph"):
        outer.graph(body)
    with pytest.raises(cl.CulaunchError, match="cannot be cloned"):
        cl.Graph.from_handle(graph.handle)


@pytest.mark.parametrize(
    "use",
    [
        lambda body: body.launch(),
        lambda body: body.upload(),
        lambda body: body.instantiate(),
        lambda body: body.executable,
    ],
)
def test_a_body_runs_with_its_graph_only(graph, use):
    body = graph.if_then(graph.condition(default=1))
    with pytest.raises(ValueError, match="it is a body of a conditional node, which runs with"):
        use(body)


def test_nodes_in_bodies_and_conditional_nodes_are_always_enabled(kernels, graph):
    body = graph.if_then(graph.condition(default=1))
    node = body.call(kernels.add, numbers(0), 1)
    with pytest.raises(ValueError, match="outside the bodies of conditional nodes"):
        body.enable(node, False)
    with pytest.raises(ValueError, match="of type conditional node"):
        graph.enable(body.node, False)


def test_a_conditional_node_keeps_its_condition(graph):
    condition, other = graph.condition(default=1), graph.condition(default=1)
    node = graph.if_then(condition).node
    graph.if_then(other)
    node.update(condition)
    with pytest.raises(ValueError, match="condition must stay the same in an update"):
        node.update(other)
    graph.launch()


def test_nodes_of_bodies_are_no_nodes_of_the_graph(kernels, graph):
    body = graph.if_then(graph.condition(default=1))
    node = body.call(kernels.add, numbers(0), 1, name="inner")
    assert (len(graph.nodes), len(body.nodes)) == (1, 1)
    with pytest.raises(TypeError, match="after must be a node of this graph"):
        graph.join([node])
    with pytest.raises(KeyError, match="no node has the name 'inner'"):
        graph.update("inner", value=2)


def test_an_unloaded_module_of_a_body(emulated, graph):
    module = cl.load(cl.compile(SOURCE, relocatable=True))
    graph.if_then(graph.condition(default=1)).call(module["add"][1, 1], numbers(0), 1)
    graph.launch()
    module.unload()
    with pytest.raises(ValueError, match="the module of add was unloaded"):
        graph.launch()


def test_a_body_keeps_its_graph_and_a_graph_its_bodies(kernels):
    x, y = numbers(0), numbers(0)

    def make():
        graph = cl.Graph()
        body = graph.if_then(graph.condition(default=1))
        body.call(kernels.add, y, 1)
        body.call(kernels.add, np.zeros(1 << 16, np.int32), 1)
        return graph, body

    graph, _ = make()
    gc.collect()
    assert run(graph, x, 0, y)[1] == [1]
    graph, body = make()
    known = weakref.ref(graph)
    del graph, _
    gc.collect()
    body.call(kernels.add, y, 10)
    body.node.graph.launch()
    assert y.numpy().tolist() == [12]
    del body
    gc.collect()
    assert known() is None


def test_drawings(kernels, graph):
    x = numbers(1, 0)
    again = graph.condition(default=1)
    body = graph.while_loop(again, name="loop")
    body.call(kernels.count_down, again, x)
    for case in body.switch(graph.condition(default=0), 2):
        case.call(kernels.add, x, 1)
    graph.join()
    assert graph.dot() == (
        "digraph {\n"
        '  0 [label="loop\\nwhile"];\n'
        '  1 [label="join"];\n'
        "  0 -> 1;\n"
        '  2 [label="count_down\\n(1, 1, 1) x (1, 1, 1)"];\n'
        '  0 -> 2 [label="while", style=dashed];\n'
        '  3 [label="switch of 2"];\n'
        "  2 -> 3;\n"
        '  4 [label="add\\n(1, 1, 1) x (1, 1, 1)"];\n'
        '  3 -> 4 [label="0", style=dashed];\n'
        '  5 [label="add\\n(1, 1, 1) x (1, 1, 1)"];\n'
        '  3 -> 5 [label="1", style=dashed];\n'
        '  subgraph cluster_0 { label="while"; 2; 3; }\n'
        '  subgraph cluster_1 { label="0"; 4; }\n'
        '  subgraph cluster_2 { label="1"; 5; }\n'
        "}\n"
    )
    root = ET.fromstring(graph.svg())
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) == 6
    dashed = [
        one for one in root.iter("{http://www.w3.org/2000/svg}path") if one.get("stroke-dasharray")
    ]
    assert len(dashed) == 3
    assert body.dot().count("->") == 3


def test_a_call_in_a_block_runs_in_its_place(kernels):
    x, y, host = numbers(0), numbers(0), np.zeros(1, np.int32)
    with cl.Graph() as graph:
        kernels.add(y, 1)
        graph.copy(host, y)
        kernels.add(y, 10)
    assert [graph._describe(number)[-1] for number in range(3)] == [(), (0,), (1,)]
    run(graph, x, 0)
    assert (host[0], y.numpy()[0]) == (1, 11)


def test_a_node_without_after_waits_for_all_others(kernels, graph):
    y = numbers(0)
    graph.call(kernels.add, y, 1, after=())
    graph.call(kernels.add, y, 2, after=())
    graph.call(kernels.add, y, 3)
    assert graph._describe(2)[-1] == (0, 1)
