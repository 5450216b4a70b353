"""Programs with conditional nodes, for the emulator and for a GPU."""

from __future__ import annotations

import numpy as np

import culaunch as cl

SOURCE = """
extern "C" __global__ void count_down(cudaGraphConditionalHandle again, int* x) {
  x[0] -= 1;
  x[1] += 1;
  cudaGraphSetConditional(again, x[0] > 0);
}
extern "C" __global__ void choose(cudaGraphConditionalHandle condition, const int* x, int mask) {
  cudaGraphSetConditional(condition, x[0] & mask);
}
extern "C" __global__ void add(int* y, int value) { y[0] += value; }
"""


class Kernels:
    """The kernels of an image, with names for their parameters."""

    def __init__(self, image):
        module = cl.load(image)
        condition = "unsigned long long condition"
        self.count_down = module.kernel("count_down", signature=f"{condition}, int* x")[1, 1]
        self.choose = module.kernel(
            "choose", signature=f"{condition}, const int* x, int mask"
        )[1, 1]  # fmt: skip
        self.add = module.kernel("add", signature="int* y, int value")[1, 1]


def numbers(*values):
    return cl.to_device(np.array(values, np.int32))


def run(graph, x, value, *others):
    """Launch a graph with a value in the first element, and return this and other arrays."""
    x.copy_from(np.array([value, *[0] * (x.shape[0] - 1)], np.int32))
    graph.launch()
    return [array.numpy().tolist() for array in (x, *others)]


def while_loop(kernels):
    x, y = numbers(0, 0), numbers(0)
    with cl.Graph() as graph:
        again = graph.condition(default=1)
        kernels.add(y, 100)
        with graph.while_loop(again):
            kernels.count_down(again, x)
        kernels.add(y, 1)
    # The default applies to each launch, whatever the last one has left.
    assert [run(graph, x, n, y) for n in (5, 3, 1)] == [
        [[0, 5], [101]], [[0, 3], [202]], [[0, 1], [303]]
    ]  # fmt: skip


def while_loop_without_a_turn(kernels):
    x = numbers(0, 0)
    graph = cl.Graph()
    again = graph.condition(default=0)
    graph.while_loop(again).call(kernels.count_down, again, x)
    assert run(graph, x, 5) == [[5, 0]]


def if_then(kernels):
    x, y = numbers(0), numbers(0)
    with cl.Graph() as graph:
        chosen = graph.condition()
        kernels.choose(chosen, x, -1)
        with graph.if_then(chosen):
            kernels.add(y, 10)
        kernels.add(y, 1)
    assert [run(graph, x, n, y)[1] for n in (0, 7, 0, -1)] == [[1], [12], [13], [24]]


def if_else(kernels):
    x, y = numbers(0), numbers(0)
    graph = cl.Graph()
    chosen = graph.condition()
    set_ = graph.call(kernels.choose, chosen, x, -1)
    then, otherwise = graph.if_else(chosen, after=set_, name="branch")
    then.call(kernels.add, y, 10)
    otherwise.fill(y, 5)
    graph.call(kernels.add, y, 1, after=then.node)
    assert [run(graph, x, n, y)[1] for n in (1, 0, 1)] == [[11], [6], [17]]


def switch(kernels):
    x, y = numbers(0), numbers(0)
    with cl.Graph() as graph:
        chosen = graph.condition(default=2)
        kernels.choose(chosen, x, -1)
        for number, case in enumerate(graph.switch(chosen, 3)):
            with case:
                kernels.add(y, 10**number)
    # A number without a body runs none.
    assert [run(graph, x, n, y)[1] for n in (0, 1, 2, 2, 3, -1)] == [
        [1], [11], [111], [211], [211], [211]
    ]  # fmt: skip


def nested(kernels):
    x, y, inner_x = numbers(0, 0), numbers(0), numbers(0, 0)
    with cl.Graph() as graph:
        again = graph.condition(default=1)
        with graph.while_loop(again) as body:
            is_odd, inner = body.condition(), graph.condition()
            kernels.choose(is_odd, x, 1)
            with body.if_then(is_odd):
                kernels.add(y, 1)
            inner_x.fill(3)
            kernels.choose(inner, inner_x, -1)
            with body.while_loop(inner):
                kernels.count_down(inner, inner_x)
                kernels.add(y, 100)
            kernels.count_down(again, x)
    assert run(graph, x, 5, y) == [[0, 5], [5 * 3 * 100 + 3]]
    assert run(graph, x, 2, y) == [[0, 2], [7 * 3 * 100 + 4]]


def update(kernels):
    x, y, z = numbers(0), numbers(0), numbers(0)
    graph = cl.Graph()
    chosen = graph.condition(default=1)
    body = graph.if_then(chosen)
    first = body.call(kernels.add, y, 1, name="first")
    first.update(y, 2)
    assert run(graph, x, 0, y)[1] == [2]
    first.update(y, 3)
    assert run(graph, x, 0, y)[1] == [5]
    body.update("first", value=10)
    assert run(graph, x, 0, y)[1] == [15]
    copy = body.copy(z, y)
    fill = body.fill(y, 7)
    assert run(graph, x, 0, y, z)[1:] == [[7], [25]]
    copy.update(z, x)
    fill.update(y, 8)
    assert run(graph, x, 4, y, z)[1:] == [[8], [4]]
    body.update_all([(y, 20), (z, y), (y, 9)])
    graph.update_all([(chosen,)])
    assert run(graph, x, 4, y, z)[1:] == [[9], [28]]


def update_beside_a_disabled_node(kernels):
    x, y = numbers(0), numbers(0)
    graph = cl.Graph()
    outside = graph.call(kernels.add, y, 1000)
    inside = graph.if_then(graph.condition(default=1)).call(kernels.add, y, 1)
    graph.enable(outside, False)
    assert run(graph, x, 0, y)[1] == [1]
    inside.update(y, 2)
    assert run(graph, x, 0, y)[1] == [3]
    graph.enable(outside)
    inside.update(y, 3)
    assert run(graph, x, 0, y)[1] == [1006]


def new_nodes_between_launches(kernels):
    x, y = numbers(0), numbers(0)
    graph = cl.Graph()
    body = graph.if_then(graph.condition(default=1))
    body.call(kernels.add, y, 1)
    assert run(graph, x, 0, y)[1] == [1]
    body.call(kernels.add, y, 10)
    assert run(graph, x, 0, y)[1] == [12]
    with graph.if_then(graph.condition(default=1)):
        kernels.add(y, 100)
    assert run(graph, x, 0, y)[1] == [123]


def a_graph_in_a_body(kernels):
    x, y = numbers(0, 0), numbers(0)
    child = cl.Graph()
    added = child.call(kernels.add, y, 2)
    with cl.Graph() as graph:
        again = graph.condition(default=1)
        with graph.while_loop(again) as body:
            kernels.count_down(again, x)
            node = body.graph(child)
    assert run(graph, x, 3, y)[1] == [6]
    added.update(y, 5)
    node.update(child)
    assert run(graph, x, 2, y)[1] == [16]


PROGRAMS = (
    while_loop, while_loop_without_a_turn, if_then, if_else, switch, nested, update,
    update_beside_a_disabled_node, new_nodes_between_launches, a_graph_in_a_body,
)  # fmt: skip
