"""Switch launches as CUDA graphs on and off; the nodes of :class:`culaunch.Graph`."""

from culaunch._graph import GraphNode
from culaunch._launch.devices.graphs import GraphStatus, graph_status, set_graphs

__all__ = [
    "GraphNode",
    "GraphStatus",
    "graph_status",
    "set_graphs",
]
