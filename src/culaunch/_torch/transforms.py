"""Operators under the transformations of ``torch.func``, and what else is no plain call."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from culaunch._torch.package import torch_package
from culaunch._torch.versions import written_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from culaunch._torch.operator import TorchOperator


def call(operator: TorchOperator, /, *args: Any, **keywords: Any) -> Any:
    """Call an operator where a call is not plain: torch's dispatcher, and what is before it.

    Raises
    ------
    TypeError
        If a tangent is asked for, which functions do not have: torch would take it for zero.
    """
    torch = sys.modules["torch"]
    is_transformed = torch._C._are_functorch_transforms_active()
    if not is_transformed and torch.autograd.forward_ad._current_level < 0:
        return operator.overload(*args, **keywords)
    tensors = list(_tensors((*args, *keywords.values())))
    if any(map(_has_tangent, tensors)):
        raise TypeError(
            f"{operator.shown} has no forward-mode derivative, so that its tangent would be zero: "
            "use reverse mode (torch.func.grad, vjp, jacrev), or detach the argument"
        )
    if is_transformed and operator.mutates:
        _count_layers(operator, args, keywords)
    if is_transformed and any(map(_is_tracked, tensors)):
        return _call_tracked(operator, operator.function._bind(args, keywords))
    return operator.overload(*args, **keywords)


def call_once(operator: TorchOperator, *args: Any) -> Any:
    """Call an operator for a gradient: a gradient of that may be an error, and the call is none."""
    torch = torch_package()
    is_recorded = operator.gradients is None and torch.is_grad_enabled()
    if is_recorded and any(one.requires_grad for one in _tensors(args)):
        return _call_tracked(operator, args)
    return operator(*args)


def _call_tracked(operator: TorchOperator, values: tuple[Any, ...]) -> Any:
    if any(isinstance(one, (list, tuple)) for one in values):  # autograd's functions take no lists
        if operator.gradients is None:
            raise _no_gradient(operator)
        return operator.overload(*values)
    gradients = operator.gradients
    return (_last(operator) if gradients is None else gradients.differentiable).apply(*values)


def _count_layers(operator: TorchOperator, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Count what is written where transformations look: the call itself counts below them."""
    torch = torch_package()
    for tensor in written_tensors(operator, args, keywords):
        for one in _layers(tensor):
            if torch._C._functorch.is_gradtrackingtensor(one):
                torch.autograd.graph.increment_version(one)


def _last(operator: TorchOperator) -> Any:
    """Return the same for an operator without gradients: to ask for them is an error."""

    def backward(*_: Any) -> Any:
        raise _no_gradient(operator)

    return differentiable(operator, lambda *_: None, backward)


def differentiable(
    operator: TorchOperator, setup: Callable[..., None], backward: Callable[..., Any]
) -> Any:
    """Return a function of autograd that the transformations can take apart, too."""
    count = sum(not one.is_keyword_only for one in operator.parameters)
    names = [one.name for one in operator.parameters[count:]]

    def forward(*values: Any) -> Any:
        return operator(*values[:count], **dict(zip(names, values[count:], strict=True)))

    members = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup),
        "backward": staticmethod(backward),
        "generate_vmap_rule": True,
    }
    base = torch_package().autograd.Function
    return type(f"Gradient of {operator.name}", (base,), members)


def _no_gradient(operator: TorchOperator) -> TypeError:
    return TypeError(
        f"{operator.shown} has no gradient, so that it would be zero: give the function one with "
        "function.backward, or detach the argument"
    )


def batch_rule(operator: TorchOperator) -> Callable[..., Any]:
    """Return what ``torch.vmap`` does with an operator: a call for each row."""

    def rule(info: Any, in_dims: tuple[Any, ...], *args: Any, **keywords: Any) -> Any:
        torch = torch_package()
        for one, dim in zip(operator.parameters, in_dims, strict=False):
            if dim is None and one.name in operator.mutates:
                raise TypeError(
                    f"{operator.shown} writes {one.name}, which has no rows of its own in this "
                    "torch.vmap: give it one for each (in_dims)"
                )
        rows = []
        for index in range(info.batch_size):
            values = [_row(value, dim, index) for value, dim in zip(args, in_dims, strict=True)]
            for i, one in enumerate(operator.parameters[: len(values)]):
                if isinstance(values[i], torch.Tensor) and one.name not in operator.mutates:
                    values[i] = values[i].contiguous()  # as a tensor without a batch would be
            rows.append(operator.overload(*values, **keywords))
        if not operator.outputs:
            return None, None
        if any(one not in (None, "Tensor") for one in operator.outputs):
            raise TypeError(
                f"{operator.shown} returns numbers, and torch.vmap takes tensors: return arrays"
            )
        if isinstance(rows[0], (tuple, list)):
            return tuple(map(torch.stack, zip(*rows, strict=True))), (0,) * len(rows[0])
        return torch.stack(rows), 0

    return rule


def _row(value: Any, dim: Any, index: int) -> Any:
    if isinstance(value, (list, tuple)):
        dims = dim if isinstance(dim, (list, tuple)) else [dim] * len(value)
        return [_row(one, its, index) for one, its in zip(value, dims, strict=True)]
    return value if dim is None else value.select(dim, index)


def _tensors(values: Iterable[Any]) -> Iterator[Any]:
    torch = torch_package()
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _has_tangent(tensor: Any) -> bool:
    """Tell whether a forward-mode derivative would have to go through a call with a tensor."""
    forward_ad = torch_package().autograd.forward_ad
    if forward_ad._current_level < 0:
        return False
    return any(forward_ad.unpack_dual(one).tangent is not None for one in _layers(tensor))


def _is_tracked(tensor: Any) -> bool:
    """Tell whether a transformation wants the gradient of a tensor."""
    functorch = torch_package()._C._functorch
    return any(
        functorch.is_gradtrackingtensor(one) and one.requires_grad for one in _layers(tensor)
    )


def _layers(tensor: Any) -> Iterator[Any]:
    """Yield what transformations have made of a tensor, and what they made that of."""
    functorch = torch_package()._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        yield tensor
        tensor = functorch.get_unwrapped(tensor)
    yield tensor
