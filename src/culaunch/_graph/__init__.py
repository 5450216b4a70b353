"""Explicit graphs: recorded or added call by call, updated, drawn and launched."""

from __future__ import annotations

from culaunch._core import GraphNode
from culaunch._graph.conditions import GraphCondition
from culaunch._graph.graph import Graph, GraphBody

__all__ = ["Graph", "GraphBody", "GraphCondition", "GraphNode"]
