"""Junk for the arguments of explicit graphs."""

import numpy as np
import pytest
from junk import wrong_answers

import culaunch as cl

PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
	ret;
}
"""


@pytest.fixture(autouse=True)
def emulator(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")


def array():
    return cl.to_device(np.zeros(4, np.float32))


def launcher():
    return cl.load(PTX).kernel("k", signature="float*, int")[1, 1]


def one_node():
    """Return a graph with a node, which takes an array and a number."""
    graph = cl.Graph()
    graph.call(launcher(), array(), 1, name="node")
    return graph


def with_condition(name, more):
    """Return a method that adds a conditional node, and its arguments; each graph is new."""
    graph = cl.Graph()
    condition = graph.condition(default=0)

    def add(condition, **others):
        if isinstance(condition, cl.graph.GraphCondition):
            own = cl.Graph()
            return getattr(own, name)(own.condition(default=0), **others)
        return getattr(graph, name)(condition, **others)

    return add, {"condition": condition, **more, **PLACE}


PLACE = {"after": None, "name": None}
CALLS = {
    "Graph.from_handle": lambda: (cl.Graph.from_handle, {"other": one_node().handle}),
    "Graph.capture": lambda: (
        lambda stream: cl.Graph.capture(stream).__enter__(), {"stream": cl.Stream()}
    ),
    "Graph.call": lambda: (
        lambda target, array, n, **place: cl.Graph().call(target, array, n, **place),
        {"target": launcher(), "array": array(), "n": 1, **PLACE},
    ),
    "Graph.copy": lambda: (cl.Graph().copy, {"target": array(), "source": array(), **PLACE}),
    "Graph.fill": lambda: (cl.Graph().fill, {"array": array(), "value": 1.0, **PLACE}),
    "Graph.host": lambda: (cl.Graph().host, {"function": int, **PLACE}),
    "Graph.graph": lambda: (cl.Graph().graph, {"child": one_node(), **PLACE}),
    "Graph.record": lambda: (cl.Graph().record, {"event": cl.Event(), **PLACE}),
    "Graph.wait": lambda: (cl.Graph().wait, {"event": cl.Event(), **PLACE}),
    "Graph.join": lambda: (one_node().join, PLACE),
    "Graph.condition": lambda: (cl.Graph().condition, {"default": 1}),
    **{
        f"Graph.{name}": lambda name=name, more=more: with_condition(name, more)
        for name, more in (
            ("if_then", {}), ("if_else", {}), ("while_loop", {}), ("switch", {"count": 2})
        )
    },
    "Graph.update": lambda: (
        lambda node, array, n: one_node().update(node, array, n),
        {"node": "node", "array": array(), "n": 2},
    ),
    "Graph.update_all": lambda: (one_node().update_all, {"rows": [(array(), 2)]}),
    "Graph.enable": lambda: (one_node().enable, {"node": "node", "is_enabled": True}),
    "Graph.launch": lambda: (one_node().launch, {"stream": None}),
    "Graph.upload": lambda: (one_node().upload, {"stream": None}),
    "GraphNode.update": lambda: (
        lambda array, n: one_node().nodes[0].update(array, n), {"array": array(), "n": 2}
    ),
    "set_graphs": lambda: (cl.graph.set_graphs, {"mode": "auto", "limit": 4}),
}  # fmt: skip
# No node has this name; the documentation names the error.
ALSO = {"Graph.update": KeyError, "Graph.enable": KeyError}


@pytest.fixture(autouse=True)
def choice_of_graphs(emulator, monkeypatch):
    """``set_graphs`` writes to the environment: what it was comes back."""
    monkeypatch.setenv("CULAUNCH_GRAPHS", "auto")
    yield
    cl.graph.set_graphs("auto", limit=256)


@pytest.mark.parametrize("name", CALLS)
def test_junk_is_refused_by_name(name):
    function, call = CALLS[name]()
    assert wrong_answers(function, call, ALSO.get(name, ())) == []
