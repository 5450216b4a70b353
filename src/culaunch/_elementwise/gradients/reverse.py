"""Reverse-mode differentiation of a trace, in the same trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._elementwise import math_functions as mf
from culaunch._elementwise.apply import convert
from culaunch._elementwise.gradients.invariance import moves_nothing
from culaunch._elementwise.gradients.rules import FLAT, RULES, Quotient
from culaunch._elementwise.graph import ordered
from culaunch._elementwise.reductions import verbs
from culaunch._elementwise.reductions.labels import Reduction
from culaunch._elementwise.trace import Value, node_of, where

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node
    from culaunch._elementwise.reductions.labels import Dims, Label, ShapedTrace


class Reverse:
    """The gradients of a trace's results.

    Parameters
    ----------
    trace : ShapedTrace
    results, gradients : tuple of Node
        A gradient has the shape of its result.
    saved : tuple of Node, optional
        The results of an earlier call, which need not be computed again.
    """

    def __init__(
        self,
        trace: ShapedTrace,
        results: tuple[Node, ...],
        gradients: tuple[Node, ...],
        saved: tuple[Node, ...] = (),
    ) -> None:
        self.trace, self._results = trace, results
        self._gradients: dict[Node, Value | Quotient] = {}
        for result, gradient in zip(results, gradients, strict=True):
            # Their dimensions are equal, because a gradient has the shape of its result.
            trace.together("backward", (result, gradient))
            self._add(result, Value(view(self.trace, gradient, trace.of(result))))
        self._saved: dict[Node, Node] = {}
        self._sums: set[Node] = set()  # of gradients
        for result, one in zip(results, saved, strict=False):
            if result.op not in ("input", "constant") and result.dtype is one.dtype:
                trace.together("backward", (result, one))
                self._saved[result] = view(self.trace, one, trace.of(result))
                trace.replace(result, self._saved[result])
        for node in reversed(ordered(results)):
            if node in self._gradients:
                self._pass_on(node, self._gradients[node])

    def of(self, node: Node) -> Node:
        """Return the gradient of an array argument, in its type and shape."""
        found = self._gradients.get(node)
        if found is None:
            # Nothing depends on it, so return zeros of its shape.
            zeros = where(Value(node) == 0, 0.0, 0.0)
            return convert(node_of(zeros), node.dtype, "backward")
        return self._shaped(
            convert(node_of(self._value(found)), node.dtype, "backward"), self.trace.of(node)
        )

    def _add(self, node: Node, gradient: Any) -> None:
        if gradient is None or node.dtype.kind != "f" or node.op == "constant":
            return
        dims = self.trace.of(node)
        own: Value | Quotient
        is_quotient = isinstance(gradient, Quotient)
        total = self._reduced(gradient.dividend if is_quotient else gradient, dims)
        if total is None:
            return
        own = self._converted(total, node)
        if is_quotient:
            own = Quotient(own, gradient.divisor)
        known = self._gradients.get(node)
        if known is not None:
            own = self._sum(known, own)
            self._sums.add(node_of(own.dividend if isinstance(own, Quotient) else own))
        self._gradients[node] = own

    def _converted(self, value: Value, node: Node) -> Value:
        return Value(convert(node_of(value), node.dtype, "backward"))

    def _reduced(self, gradient: Value, dims: Dims) -> Value | None:
        """Sum over the dimensions along which an operand was broadcast; None: the sum is 0."""
        own = self.trace.of(node_of(gradient))
        extra = len(own) - len(dims)
        kept = {label.root() for label in dims if label is not None}
        axes = tuple(
            axis for axis, label in enumerate(own) if label is not None and label.root() not in kept
        )
        if axes:
            total = self._total(gradient, axes)
            if total is None:
                return None
            gradient = total
        if extra > 0:
            node = node_of(gradient)
            return Value(view(self.trace, node, self.trace.of(node)[extra:]))
        return gradient

    def _total(self, gradient: Value, axes: tuple[int, ...]) -> Value | None:
        """Add up; sums of gradients one by one, and before they are multiplied by a row's value.

        More reductions then depend on fewer others, and share a pass over the row. None: the sum
        is 0.
        """
        node = node_of(gradient)
        dims = self.trace.of(node)
        gone = {label.root() for axis in axes if (label := dims[axis]) is not None}
        if self._cancels_out(node, gone):
            return None
        if node.op == "negative":
            total = self._total(Value(node.args[0]), axes)
            return None if total is None else -total
        if node in self._sums and all(self._is_alike(arg, node) for arg in node.args):
            totals = [self._total(Value(arg), axes) for arg in node.args]
            kept = [one for one in totals if one is not None]
            return kept[0] + kept[1] if len(kept) == 2 else next(iter(kept), None)
        if node.op == "multiply":
            for factor, other in (node.args, node.args[::-1]):
                own = self._once(factor)
                if gone.isdisjoint(self.trace.labels(own)) and self._is_alike(other, node):
                    total = self._total(Value(other), axes)
                    return None if total is None else Value(own) * total
        return verbs.sum(gradient, axis=axes, keepdims=True)

    def _cancels_out(self, node: Node, gone: set[Label]) -> bool:
        """Whether elements are the differences to their mean, whose sum is 0."""
        if node.op != "subtract" or node.args[1].op != "divide":
            return False
        x, mean = node.args
        part, count = mean.args
        while count.op == "cast":
            (count,) = count.args
        if part.op != "part" or count.op != "count":
            return False
        (reduction,) = part.args
        detail = reduction.detail
        assert isinstance(detail, Reduction)
        return (
            detail.combiner.name == "sum"
            and reduction.args == (x,)
            and gone == {label.root() for label in detail.labels}
            and gone == {label.root() for label in count.detail}  # type: ignore[attr-defined]
        )

    def _is_alike(self, a: Node, b: Node) -> bool:
        """Whether two nodes have the same dimensions."""
        own, other = self.trace.of(a), self.trace.of(b)
        return [x and x.root() for x in own] == [x and x.root() for x in other]

    def _once(self, node: Node) -> Node:
        """Return a gradient before it was repeated along dimensions."""
        if node.op == "squeeze" and isinstance(node.detail, tuple) and node.detail[:1] == ("view",):
            (inner,) = node.args
            if len(self.trace.of(inner)) == len(self.trace.of(node)):
                return inner
        return node

    def _value(self, gradient: Value | Quotient) -> Value:
        if not isinstance(gradient, Quotient):
            return gradient
        dividend = node_of(gradient.dividend)
        inner = self._once(dividend)
        if inner is dividend:
            return Value(node_of(gradient.value))
        return Value(
            view(self.trace, node_of(Value(inner) / gradient.divisor), self.trace.of(dividend))
        )

    def _sum(self, a: Value | Quotient, b: Value | Quotient) -> Value | Quotient:
        if not isinstance(a, Quotient) or not isinstance(b, Quotient):
            return self._value(a) + self._value(b)
        if node_of(a.divisor) is not node_of(b.divisor):
            return self._value(a) + self._value(b)
        return Quotient(a.dividend + b.dividend, a.divisor)

    def _shaped(self, node: Node, dims: Dims) -> Node:
        """Repeat a gradient along the dimensions that it lacks."""
        own = self.trace.of(node)
        if [x and x.root() for x in own] == [x and x.root() for x in dims]:
            return node
        return view(self.trace, node, dims)

    def _pass_on(self, node: Node, waiting: Value | Quotient) -> None:
        op, args = node.op, node.args
        if op in FLAT or op == "input" or node.dtype.kind != "f":
            return
        if isinstance(waiting, Quotient):
            if op == "exp":
                self._add(args[0], waiting.times(Value(self._saved.get(node, node))))
                return
            if op == "part" and self._is_sum(node):
                arg = args[0].args[0]
                self._add(arg, Quotient(self._repeated(waiting.dividend, arg), waiting.divisor))
                return
        gradient = self._value(waiting)
        if op in ("cast", "round_to"):
            if args[0].dtype.kind == "c":
                raise self._refusal("complex numbers")
            self._add(args[0], gradient)
        elif op == "where":
            # logsumexp uses the maximum only if it is finite.
            if moves_nothing(self.trace, node, self._results):
                return
            condition = Value(args[0])
            self._add(args[1], where(condition, gradient, 0.0))
            self._add(args[2], where(condition, 0.0, gradient))
        elif op == "squeeze":
            # Dimensions that were dropped have one element.
            self._add(args[0], Value(self._shaped(node_of(gradient), self._with_dropped(node))))
        elif op == "part":
            self._reduction(node, gradient)
        elif op in RULES:
            if any(arg.dtype.kind == "c" for arg in args):
                raise self._refusal("complex numbers")
            values = [Value(arg) for arg in args]
            result = Value(self._saved.get(node, node))
            for arg, own in zip(args, RULES[op](gradient, result, *values), strict=True):
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
            if moves_nothing(self.trace, part, self._results):
                return
            kept = list(self.trace.of(part))
            if not detail.keepdims:
                for axis in detail.axes:
                    kept.insert(axis, None)
            most = Value(self._shaped(part, tuple(kept)))
            x = Value(arg)
            # Equal elements share the gradient, as in torch.
            ones = mf.astype(x == most, arg.dtype)
            count = verbs.sum(ones, axis=detail.axes, keepdims=True)
            self._add(arg, where(x == most, gradient / count, 0.0))
        elif name == "prod":
            self._add(arg, self._of_product(gradient, Value(arg), detail))
        else:
            raise self._refusal(name)

    def _of_product(self, gradient: Value, x: Value, detail: Reduction) -> Value:
        """Return the gradient of factors: the product of the others, which may have one zero."""
        is_zero = x == 0
        zeros = mf.astype(is_zero, node_of(x).dtype)
        count = verbs.sum(zeros, axis=detail.axes, keepdims=True)
        rest = verbs.prod(where(is_zero, 1.0, x), axis=detail.axes, keepdims=True)
        of_zero = where(count == 1, gradient * rest, 0.0)
        return where(is_zero, of_zero, where(count == 0, gradient * rest / x, 0.0))

    def _is_sum(self, part: Node) -> bool:
        detail = part.args[0].detail
        assert isinstance(detail, Reduction)
        return detail.combiner.name == "sum" and detail.keepdims

    def _repeated(self, gradient: Value, arg: Node) -> Value:
        return Value(self._shaped(node_of(gradient), self.trace.of(arg)))

    def _refusal(self, what: str) -> TypeError:
        return TypeError(
            f"{self.trace.name}: backward='auto' does not know the gradient of {what}: give a "
            "backward function instead, with function.backward"
        )


def view(trace: ShapedTrace, node: Node, dims: Dims) -> Node:
    """Return a node with other dimensions of the same elements, or repeated along some."""
    made = trace.operation("squeeze", node.dtype, (node,), detail=("view", dims))
    trace.dims[made] = dims
    return made
