"""Switch launches as CUDA graphs on and off; the parts of :class:`culaunch.Graph`."""

from culaunch._graph import GraphBody, GraphCondition, GraphNode
from culaunch._launch.devices.graphs import GraphStatus, graph_status, set_graphs

__all__ = [
    "GraphBody",
    "GraphCondition",
    "GraphNode",
    "GraphStatus",
    "graph_status",
    "set_graphs",
]
