"""Explicit graphs on the emulator: what is recorded, updated and run."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import culaunch as cl


def test_a_block_records_and_runs_nothing(kernels, array):
    with cl.Graph() as graph:
        kernels.add[1, 4](array, 3)
        kernels.multiply[1, 4](array, 5)
    assert array[0] == 0
    assert len(graph) == 2
    graph.launch()
    assert array[:5].tolist() == [15] * 4 + [0]
    graph.launch()
    assert array[0] == (15 + 3) * 5
    kernels.add[1, 4](array, 1)  # after the block, a launch is a launch
    assert array[0] == 91


def test_an_error_in_a_block_is_that_of_the_launch(kernels, array):
    graph = cl.Graph()
    with pytest.raises(TypeError, match=r"add takes 2 arguments"), graph:
        kernels.add[1, 4](array)
    graph.call(kernels.add[1, 2048], array, 1)
    with pytest.raises(cl.LaunchError, match=r"add with grid .*block \(2048, 1, 1\)"):
        graph.launch()


def test_a_node_is_updated_by_position_and_by_name(kernels, array):
    other = array.copy()
    graph = cl.Graph()
    node = graph.call(kernels.add[1, 4], array, 1, name="first")
    graph.launch()
    node.update(other, 2)
    graph.launch()
    assert (array[0], other[0]) == (1, 2)
    graph.update(node, value=10)
    graph.launch()
    graph.update("first", y=array)
    graph.launch()
    assert (array[0], other[0]) == (11, 12)
    assert node.args[1] == 10


def test_arguments_of_an_update_are_checked_as_those_of_a_launch(kernels, array):
    graph = cl.Graph()
    node = graph.call(kernels.add[1, 4], array, 1)
    with pytest.raises(TypeError, match=r"must be an array of int32"):
        node.update(array.astype("f4"), 1)
    with pytest.raises(TypeError, match="no parameter 'n'"):
        graph.update(node, n=1)
    with pytest.raises(KeyError, match="no node has the name 'second': the names are none"):
        graph.update("second", value=1)
    with pytest.raises(TypeError, match="node must be a node of this graph"):
        cl.Graph().update(node, value=1)
    graph.launch()
    assert array[0] == 1  # as it was


def test_an_update_before_the_first_launch_and_after_more_nodes(kernels, array):
    graph = cl.Graph()
    first = graph.call(kernels.add[1, 4], array, 1)
    first.update(array, 2)
    graph.launch()
    first.update(array, 3)
    graph.call(kernels.multiply[1, 4], array, 10)
    graph.launch()
    assert array[0] == (2 + 3) * 10


def test_all_nodes_are_updated_at_once(kernels, array):
    graph = cl.Graph()
    graph.call(kernels.add[1, 4], array, 1)
    graph.call(kernels.multiply[1, 4], array, 1)
    graph.launch()
    graph.update_all([(array, 2), (array, 10)])
    graph.launch()
    assert array[0] == 30
    assert [node.args[1] for node in graph.nodes] == [2, 10]
    with pytest.raises(ValueError, match=r"a tuple for each of the 2 nodes \(got 1\)"):
        graph.update_all([(array, 2)])
    with pytest.raises(TypeError, match=r"rows\[1\] must be a tuple"):
        graph.update_all([(array, 2), [array, 3]])
    with pytest.raises(TypeError, match="multiply takes 2 arguments"):
        graph.update_all([(array, 2), (array,)])


def test_dependencies(kernels, array):
    graph = cl.Graph()
    last = graph.call(kernels.multiply[1, 4], array, 7, after=())
    first = graph.call(kernels.add[1, 4], array, 1, after=())
    joined = graph.join([first, last])
    graph.call(kernels.add[1, 4], array, 100, after=joined)
    assert [graph._describe(number)[-1] for number in range(4)] == [(), (), (1, 0), (2,)]
    graph.launch()
    assert array[0] == 101
    with pytest.raises(TypeError, match="after must be a node of this graph"):
        graph.call(kernels.add[1, 4], array, 1, after=[cl.Graph()])


def test_a_function_is_one_node_and_its_memory_stays(kernels, torch):
    add = kernels.add

    @cl.function
    def both(x, n: int):
        scratch = cl.zeros_like(x)
        add[1, 8](scratch, n)
        out = cl.zeros_like(x)
        add[1, 8](out, 2 * n)
        return out

    x = torch.zeros(8, dtype=torch.int32)
    graph = cl.Graph()
    node, out = graph._call(both, (x, 5), {}, None, None)
    assert len(graph.nodes) == 1
    assert len(graph) == 4
    graph.launch()
    assert out.tolist() == [10] * 8
    again = node.update(x, 7)
    for _ in range(3):
        torch.zeros(8, dtype=torch.int32).fill_(99)  # freed memory would be reused
        graph.launch()
        assert again.tolist() == [14] * 8
    assert out.tolist() == [10] * 8
    graph.update(node, n=8)
    graph.launch()
    with pytest.raises(TypeError, match="the call has no parameter 'm': its parameters are x, n"):
        graph.update(node, m=8)


def test_a_function_in_a_block(kernels, torch):
    add = kernels.add

    @cl.function
    def twice(x, n: int):
        add[1, 8](x, n)
        add[1, 8](x, n)

    x = torch.zeros(8, dtype=torch.int32)
    with cl.Graph() as graph:
        twice(x, 1)
        add[1, 8](x, 10)
    assert [node._range for node in graph.nodes] == [(0, 2), (2, 1)]
    graph.update(graph.nodes[0], n=5)
    graph.launch()
    assert x.tolist() == [20] * 8


def test_a_call_that_takes_another_way_cannot_update(kernels, torch):
    add = kernels.add

    @cl.function
    def some(x, n: int):
        add[1, 8](x, n)
        if n > 5:
            add[1, 8](x, n)

    x = torch.zeros(8, dtype=torch.int32)
    graph = cl.Graph()
    node = graph.call(some, x, 1)
    with pytest.raises(ValueError, match="must launch the same kernels as when it was recorded"):
        node.update(x, 6)
    more = graph.call(some, x, 7)
    with pytest.raises(ValueError, match="must launch the same kernels as when it was recorded"):
        more.update(x, 1)
    with pytest.raises(ValueError, match="the call launched nothing"):
        graph.call(lambda: None)


def test_copies_fills_and_host_functions(kernels):
    memory = cl.zeros(8, "int32")
    wide = cl.zeros(4, "float64")
    host, seen = np.arange(8, dtype="i4"), []
    result = np.zeros(8, "i4")
    graph = cl.Graph()
    fill = graph.fill(memory, 7)
    graph.call(kernels.add[1, 8], memory, 1)
    copy = graph.copy(result, memory)
    graph.host(lambda: seen.append(result.tolist()))
    graph.fill(wide, 1.5)
    graph.launch()
    assert seen == [[8] * 8]
    assert wide.numpy().tolist() == [1.5] * 4
    fill.update(memory, 9)
    graph.launch()
    assert seen[1] == [10] * 8
    graph.copy(memory, host)
    other = np.zeros(8, "i4")
    copy.update(other, memory)
    graph.launch()
    assert memory.numpy().tolist() == list(range(8))
    assert (other.tolist(), result.tolist()) == ([10] * 8, [10] * 8)
    with pytest.raises(ValueError, match="the same number of bytes"):
        graph.copy(np.zeros(3, "i4"), memory)
    with pytest.raises(ValueError, match="two arrays in host memory"):
        graph.copy(host, result)


def test_copies_and_fills_in_a_block_are_nodes(kernels):
    first, second = cl.zeros(8, "int32"), cl.zeros(8, "int32")
    with cl.Graph() as graph:
        first.fill(3)
        kernels.add[1, 8](first, 1)
        second.copy_from(first)
        with pytest.raises(RuntimeError, match=r"add it with graph\.copy"):
            second.copy_from(np.zeros(8, "i4"))
    assert first.numpy().tolist() == [0] * 8
    graph.launch()
    assert second.numpy().tolist() == [4] * 8


def test_events_and_graphs_in_graphs(kernels, array):
    inner = cl.Graph()
    node = inner.call(kernels.add[1, 4], array, 1)
    outer = cl.Graph()
    child = outer.graph(inner)
    before, after = cl.Event(), cl.Event()
    outer.record(before, after=())
    outer.call(kernels.multiply[1, 4], array, 3, after=child)
    outer.wait(before)
    outer.record(after)
    outer.launch()
    assert array[0] == 3
    assert after.elapsed(before) >= 0
    node.update(array, 5)
    child.update(inner)
    outer.launch()
    assert array[0] == (3 + 5) * 3


@pytest.mark.parametrize("kind", ["graph", "host function", "join"])
def test_cuda_disables_kernels_copies_and_fills_only(kernels, kind):
    array = cl.zeros(4, "int32")
    inner = cl.Graph()
    inner.call(kernels.add[1, 4], array, 1)
    graph = cl.Graph()
    filled = graph.fill(array, 5)
    node = {
        "graph": lambda: graph.graph(inner),
        "host function": lambda: graph.host(lambda: None),
        "join": lambda: graph.join([filled]),
    }[kind]()
    for is_enabled in (False, True):
        with pytest.raises(ValueError, match=f"kernels, copies and fills .* of type {kind}"):
            graph.enable(node, is_enabled)
    graph.enable(filled, False)
    graph.launch()
    assert array.numpy()[0] == (1 if kind == "graph" else 0)


def test_a_copy_of_another_librarys_graph(kernels, array):
    graph = cl.Graph()
    graph.call(kernels.add[1, 4], array, 1)
    copy = cl.Graph.from_handle(graph.handle)
    copy.call(kernels.multiply[1, 4], array, 10)
    copy.launch()
    assert array[0] == 10
    with pytest.raises(TypeError, match=r"add it with graph\.call"):
        copy.nodes[0].update(array, 1)

    class Torchs:
        def raw_cuda_graph(self):
            return graph.handle

    assert len(cl.Graph.from_handle(Torchs())) == 1
    for wrong in ("graph", 0, -1, True, None):
        with pytest.raises(TypeError, match="other must be a CUgraph"):
            cl.Graph.from_handle(wrong)


def test_a_graph_of_an_unloaded_module_says_so(kernels, array):
    graph = cl.Graph()
    graph.call(kernels.add[1, 4], array, 1)
    graph.launch()
    kernels.module.unload()
    with pytest.raises(ValueError, match=r"the module of add was unloaded"):
        graph.launch()
    assert array[0] == 1


def test_drawings(kernels, array):
    graph = cl.Graph()
    first = graph.call(kernels.add[2, 4], array, 1, name='a "name"')
    graph.call(kernels.multiply[1, 4], array, 1, after=())
    graph.join([first])
    assert graph.dot() == (
        "digraph {\n"
        '  0 [label="a \\"name\\"\\nadd\\n(2, 1, 1) x (4, 1, 1)"];\n'
        '  1 [label="multiply\\n(1, 1, 1) x (4, 1, 1)"];\n'
        '  2 [label="join"];\n'
        "  0 -> 2;\n"
        "}\n"
    )
    root = ET.fromstring(graph.svg())
    assert root.get("width") == "447"
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) == 3
    assert graph._repr_svg_() == graph.svg()
    assert cl.Graph().svg().startswith("<svg")


def test_a_block_within_itself(kernels, array):
    graph = cl.Graph()
    with graph, pytest.raises(RuntimeError, match="the graph is being recorded"), graph:
        pass
    other = cl.Graph()
    with graph:
        kernels.add[1, 4](array, 1)
        with other:
            kernels.add[1, 4](array, 10)
        kernels.add[1, 4](array, 100)
    assert (len(graph), len(other)) == (2, 1)
    graph.launch()
    assert array[0] == 101
