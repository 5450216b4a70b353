"""Calls of operators that autograd follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._torch.package import torch_package

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from culaunch._torch.operator import TorchOperator


def call_once(operator: TorchOperator, *args: Any) -> Any:
    """Call an operator for a gradient. Only the gradient of this call may be an error."""
    torch = torch_package()
    # An operator with gradients is followed by its own kernel for autograd. Without, autograd
    # would not see the call at all, and a gradient would be zero without a word.
    is_recorded = operator.gradients is None and torch.is_grad_enabled()
    if is_recorded and any(one.requires_grad for one in tensors_of(args)):
        return call_tracked(operator, args)
    return operator(*args)


def call_tracked(operator: TorchOperator, values: tuple[Any, ...]) -> Any:
    """Call an operator in a function of autograd, which transformations can take apart."""
    sizes = tuple(len(one) if isinstance(one, (list, tuple)) else None for one in values)
    gradients = operator.gradients
    if gradients is None:
        # This class exists only because its backward raises.
        made = differentiable(operator, _keep_nothing, _refusal(operator), sizes)
    elif any(one is not None for one in sizes):
        made = differentiable(
            operator, gradients.setup, gradients.backward, sizes, run=gradients.forward
        )
    else:
        made = gradients.differentiable
    result = made.apply(*_flat(values, sizes))
    saves = gradients is not None and gradients.forward is not None
    return gradients.results(result) if saves else result


def differentiable(
    operator: TorchOperator,
    setup: Callable[..., None],
    backward: Callable[..., Any],
    sizes: Sequence[int | None] = (),
    *,
    run: TorchOperator | None = None,
) -> Any:
    """Return a function of autograd that the transformations can also take apart.

    `sizes` has the number of tensors in each list argument: functions of autograd take no lists.
    `run` is an operator to call instead, if it returns more that `setup` saves.
    """
    called = run or operator
    # A function of autograd takes arguments only by position.
    count = sum(not one.is_keyword_only for one in operator.parameters)
    names = [one.name for one in operator.parameters[count:]]
    sizes = sizes or (None,) * len(operator.parameters)

    def forward(*flat: Any) -> Any:
        values = _nested(flat, sizes)
        return called(*values[:count], **dict(zip(names, values[count:], strict=True)))

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        setup(ctx, _nested(inputs, sizes), output)

    def flat_backward(ctx: Any, *grads: Any) -> Any:
        found = backward(ctx, *grads)
        each = [
            # A missing gradient for a list means a missing gradient for each of its tensors.
            [None] * size if one is None and size is not None else one
            for one, size in zip(found, sizes, strict=True)
        ]
        return tuple(_flat(each, sizes))

    def jvp(*_: Any) -> Any:
        raise no_tangent(operator)

    members = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(flat_backward),
        "jvp": staticmethod(jvp),
        # The body of forward consists of torch operations, so torch can batch it automatically.
        "generate_vmap_rule": True,
    }
    base = torch_package().autograd.Function
    return type(f"Gradient of {operator.name}", (base,), members)


def no_gradient(operator: TorchOperator) -> TypeError:
    if operator.mutates:
        return TypeError(
            f"{operator.shown} writes {', '.join(operator.mutates)} and has no gradient, so "
            "autograd would compute a wrong gradient. Detach the arguments, call it under "
            "torch.no_grad(), or let the function return a new array"
        )
    return TypeError(
        f"{operator.shown} has no gradient, so autograd would use zero. Give the function a "
        "gradient with function.backward, or detach the argument"
    )


def no_tangent(operator: TorchOperator) -> TypeError:
    return TypeError(
        f"{operator.shown} has no forward-mode derivative, so its tangent would be zero. Use "
        "reverse mode (torch.func.grad, vjp, jacrev), or detach the argument"
    )


def tensors_of(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the tensors among values, and in lists there."""
    torch = torch_package()
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_of(value)


def _keep_nothing(*_: Any) -> None:
    pass


def _refusal(operator: TorchOperator) -> Callable[..., Any]:
    def backward(*_: Any) -> Any:
        raise no_gradient(operator)

    return backward


def _flat(values: Iterable[Any], sizes: Sequence[int | None]) -> list[Any]:
    flat: list[Any] = []
    for value, size in zip(values, sizes, strict=True):
        if size is None:
            flat.append(value)
        else:
            flat += value
    return flat


def _nested(flat: Sequence[Any], sizes: Sequence[int | None]) -> tuple[Any, ...]:
    rest = iter(flat)
    return tuple(
        next(rest) if size is None else [next(rest) for _ in range(size)] for size in sizes
    )
