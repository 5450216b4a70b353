"""Reverse-mode differentiation of a trace, in the same trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._elementwise.apply import convert
from culaunch._elementwise.gradients.rules import FLAT, RULES
from culaunch._elementwise.reductions import verbs
from culaunch._elementwise.reductions.labels import Reduction
from culaunch._elementwise.trace import Value, node_of, where

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node
    from culaunch._elementwise.reductions.labels import Dims, ShapedTrace


class Reverse:
    """The gradients of a trace's results.

    Parameters
    ----------
    trace : ShapedTrace
    results, gradients : tuple of Node
        A gradient has the shape of its result.
    """

    def __init__(
        self, trace: ShapedTrace, results: tuple[Node, ...], gradients: tuple[Node, ...]
    ) -> None:
        self.trace = trace
        self._gradients: dict[Node, Value] = {}
        for result, gradient in zip(results, gradients, strict=True):
            # Their dimensions meet: the gradient has the shape of its result.
            trace.together("backward", (result, gradient))
            self._add(result, Value(self._view(gradient, trace.of(result))))
        for node in self._order(results):
            if node in self._gradients:
                self._pass_on(node, self._gradients[node])

    def of(self, node: Node) -> Node:
        """Return the gradient of an array argument, in its type and shape."""
        found = self._gradients.get(node)
        if found is None:
            # Nothing depends on it: zeros of its shape.
            return convert(node_of(Value(node) * 0), node.dtype, "backward")
        return self._shaped(convert(node_of(found), node.dtype, "backward"), self.trace.of(node))

    def _order(self, results: tuple[Node, ...]) -> list[Node]:
        """Return the nodes, each before its operands."""
        done: dict[Node, None] = {}
        pending = [(node, False) for node in results]
        while pending:
            node, is_ready = pending.pop()
            if is_ready:
                done[node] = None
            elif node not in done:
                pending.append((node, True))
                pending += [(arg, False) for arg in node.args if arg not in done]
        return list(reversed(done))

    def _add(self, node: Node, gradient: Any) -> None:
        if gradient is None or node.dtype.kind != "f" or node.op == "constant":
            return
        own = self._reduced(gradient, self.trace.of(node))
        own = Value(convert(node_of(own), node.dtype, "backward"))
        known = self._gradients.get(node)
        self._gradients[node] = own if known is None else known + own

    def _reduced(self, gradient: Value, dims: Dims) -> Value:
        """Add up over the dimensions that an operand was broadcast along."""
        own = self.trace.of(node_of(gradient))
        extra = len(own) - len(dims)
        kept = {label.root() for label in dims if label is not None}
        axes = tuple(
            axis for axis, label in enumerate(own) if label is not None and label.root() not in kept
        )
        if axes:
            gradient = verbs.sum(gradient, axis=axes, keepdims=True)
        if extra > 0:
            node = node_of(gradient)
            return Value(self._view(node, self.trace.of(node)[extra:]))
        return gradient

    def _shaped(self, node: Node, dims: Dims) -> Node:
        """Repeat a gradient along the dimensions that it lacks."""
        own = self.trace.of(node)
        if [x and x.root() for x in own] == [x and x.root() for x in dims]:
            return node
        return self._view(node, dims)

    def _view(self, node: Node, dims: Dims) -> Node:
        made = self.trace.operation("squeeze", node.dtype, (node,), detail=("view", dims))
        self.trace.dims[made] = dims
        return made

    def _pass_on(self, node: Node, gradient: Value) -> None:
        op, args = node.op, node.args
        if op in FLAT or op == "input" or node.dtype.kind != "f":
            return
        if op in ("cast", "round_to"):
            if args[0].dtype.kind == "c":
                raise self._refusal("complex numbers")
            self._add(args[0], gradient)
        elif op == "where":
            zero = gradient * 0
            condition = Value(args[0])
            self._add(args[1], where(condition, gradient, zero))
            self._add(args[2], where(condition, zero, gradient))
        elif op == "squeeze":
            # Dimensions that were dropped have one element.
            self._add(args[0], Value(self._shaped(node_of(gradient), self._with_dropped(node))))
        elif op == "part":
            self._reduction(node, gradient)
        elif op in RULES:
            if any(arg.dtype.kind == "c" for arg in args):
                raise self._refusal("complex numbers")
            values = [Value(arg) for arg in args]
            for arg, own in zip(args, RULES[op](gradient, Value(node), *values), strict=True):
                self._add(arg, own)
        else:
            raise self._refusal(op)

    def _with_dropped(self, node: Node) -> Dims:
        return self.trace.of(node.args[0])

    def _reduction(self, part: Node, gradient: Value) -> None:
        (node,) = part.args
        detail = node.detail
        assert isinstance(detail, Reduction)
        if not detail.keepdims:
            dims = list(self.trace.of(part))
            for axis in detail.axes:
                dims.insert(axis, None)
            gradient = Value(self._shaped(node_of(gradient), tuple(dims)))
        name, arg = detail.combiner.name, node.args[part.index]
        if name == "sum":
            self._add(arg, self._repeated(gradient, arg))
        elif name in ("max", "min"):
            kept = list(self.trace.of(part))
            if not detail.keepdims:
                for axis in detail.axes:
                    kept.insert(axis, None)
            most = Value(self._shaped(part, tuple(kept)))
            x = Value(arg)
            # Equal elements share the gradient, as in torch.
            ones = where(x == most, x * 0 + 1, x * 0)
            count = verbs.sum(ones, axis=detail.axes, keepdims=True)
            self._add(arg, where(x == most, gradient / count, x * 0))
        else:
            raise self._refusal(name)

    def _repeated(self, gradient: Value, arg: Node) -> Value:
        return Value(self._shaped(node_of(gradient), self.trace.of(arg)))

    def _refusal(self, what: str) -> TypeError:
        return TypeError(
            f"{self.trace.name}: backward='auto' knows no gradient of {what}: give a backward "
            "function instead, with function.backward"
        )
