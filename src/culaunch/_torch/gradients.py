"""An operator's gradients, computed by its function's ``Function.backward``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from culaunch._function import Function
from culaunch._torch import tracked

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._torch.operator import TorchOperator

    AsOperator = Callable[[TorchOperator, str, Function[..., Any]], TorchOperator]


class Gradients:
    """The functions that torch calls in the forward pass, to save values, and in the backward pass.

    Parameters
    ----------
    operator : TorchOperator
    call : callable
        Computes the gradients: an operator, or any Python function of tensors.
    forward : TorchOperator, optional
        Called instead of the operator: its results are followed by the values to save.
    """

    def __init__(
        self,
        operator: TorchOperator,
        call: Callable[..., Any],
        forward: TorchOperator | None = None,
    ) -> None:
        gradient = operator.function._gradient
        assert gradient is not None
        self.operator = operator
        self.needs = gradient.needs
        self.call, self.forward = call, forward
        self._count = sum(one is not None for one in operator.outputs)
        self.names = [one.name for one in operator.parameters]
        self.arrays = [one.type.startswith("Tensor") for one in operator.parameters]
        # torch calls this to save the values that are needed.
        self.torch_setup = _setup(operator, self)
        # The same for torch.func's transformations, which take the function apart.
        self.differentiable = tracked.differentiable(
            operator, self.setup, self.backward, run=forward
        )

    def setup(self, ctx: Any, inputs: tuple[Any, ...], *rest: Any) -> None:
        """Save backward's inputs: ``(ctx, inputs, output)``, or with keywords before output."""
        output = rest[-1]
        keywords = rest[0] if len(rest) == 2 else {}
        values = [*inputs, *(keywords[name] for name in self.names[len(inputs) :])]
        returned = output if isinstance(output, (tuple, list)) else (output,)
        outputs, extra = returned[: self._count], returned[self._count :]
        if self.forward is not None:
            ctx.mark_non_differentiable(*extra)
            # torch would fill an array of zeros for each value that has no gradient. A single
            # result always has one.
            ctx.set_materialize_grads(self._count > 1)
        tensors: list[Any] = []
        # torch saves tensors, and detects changes in place. Other values are saved beside them,
        # with a plan for combining both.
        plan: list[tuple[str, Any]] = []
        tensor_type = sys.modules["torch"].Tensor
        for what, which in self.needs:
            if what == "grad":
                plan.append(("grad", which))
                continue
            given = {"out": outputs, "saved": extra}.get(what)
            value = values[self.names.index(str(which))] if given is None else given[which]  # type: ignore[index]
            if isinstance(value, (list, tuple)):
                plan.append(("list", (len(tensors), len(tensors) + len(value))))
                tensors += value
            elif isinstance(value, tensor_type):
                plan.append(("tensor", len(tensors)))
                tensors.append(value)
            else:
                plan.append(("value", value))
        ctx.save_for_backward(*tensors)
        ctx.plan = plan

    def results(self, returned: Any) -> Any:
        """Return the operator's results of all that ``forward`` returned."""
        return returned[0] if self._count == 1 else returned[: self._count]

    def backward(self, ctx: Any, *grads: Any) -> Any:
        """Compute the gradients: one for each input."""
        saved = ctx.saved_tensors
        values = []
        for what, which in ctx.plan:
            if what == "grad":
                # A gradient may have any strides, such as an expanded gradient of a sum. The
                # backward function expects dense arrays.
                values.append(grads[which].contiguous())
            elif what == "list":
                values.append(list(saved[which[0] : which[1]]))
            else:
                values.append(saved[which] if what == "tensor" else which)
        found = self.call(*values)
        results = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(results) != sum(self.arrays):
            raise TypeError(
                f"the backward function of {self.operator.name} must return {sum(self.arrays)} "
                f"gradients, one for each array parameter, or None (got {len(results)})"
            )
        waiting = iter(results)
        return tuple(next(waiting) if is_array else None for is_array in self.arrays)


def make(operator: TorchOperator, as_operator: AsOperator) -> Gradients:
    """Make the gradients of an operator whose function has a backward function.

    ``as_operator`` makes an operator of another culaunch function, with a suffix to the name.
    """
    gradient = operator.function._gradient
    assert gradient is not None
    if operator.mutates:
        raise TypeError(
            f"{operator.name} writes its argument {operator.mutates[0]}, and torch computes no "
            "gradients of operators that write arguments: return a new array"
        )
    call, forward = gradient.function, gradient.forward
    if isinstance(call, Function):
        call = _WithNone(as_operator(operator, "backward", call))
    if forward is not None:
        forward = as_operator(operator, "forward", forward)
    return Gradients(operator, call, forward)


class _WithNone:
    """A call of an operator that restores None in its function's result."""

    def __init__(self, operator: TorchOperator) -> None:
        self.operator = operator

    def __call__(self, *args: Any) -> Any:
        result = tracked.call_once(self.operator, *args)
        outputs = self.operator.outputs
        if None not in outputs:
            return result
        values = iter(result if isinstance(result, (tuple, list)) else (result,))
        return tuple(None if one is None else next(values) for one in outputs)


def _setup(operator: TorchOperator, gradients: Gradients) -> Callable[..., None]:
    """Return a function with the parameters that torch expects."""
    if any(one.is_keyword_only for one in operator.parameters):

        def setup_with_keywords(
            ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any
        ) -> None:
            gradients.setup(ctx, inputs, keyword_only_inputs, output)

        return setup_with_keywords

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        gradients.setup(ctx, inputs, output)

    return setup
