"""Conditional nodes on a GPU: the programs that the emulator runs, linked with CUDA's library."""

from __future__ import annotations

import pytest
from conditional_programs import PROGRAMS, SOURCE, Kernels
from cuda.pathfinder import StaticLibNotFoundError, find_static_lib

import culaunch as cl

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def kernels():
    try:
        library = find_static_lib("cudadevrt")
    except StaticLibNotFoundError:
        pytest.skip("needs libcudadevrt")
    return Kernels(cl.link([cl.compile(SOURCE, relocatable=True), library]))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_values(kernels, program):
    program(kernels)


def test_cuda_copies_no_graph_with_conditional_nodes():
    graph = cl.Graph()
    graph.if_then(graph.condition(default=1)).join()
    with pytest.raises(cl.CulaunchError):
        cl.Graph.from_handle(graph.handle)
    graph.launch()
