"""An operator's results for tensors without data, from a run of the body on their shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.untraced import untraced
from culaunch._function import AbstractArray
from culaunch._torch.package import torch_package
from culaunch._torch.results import flat

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._torch.operator import TorchOperator


def fake_of(operator: TorchOperator) -> Callable[..., Any]:
    """Return the fake implementation of an operator."""

    @untraced
    def fake(*args: Any, **keywords: Any) -> Any:
        function = operator.function
        values = function._bind(args, keywords)
        first = _first_tensor(values)
        # The body runs on shapes, which may be symbols of torch's compiler. Each comparison becomes
        # a guard of the compiled graph.
        result = function.abstract(*_positional(operator, values), **_named(operator, values))
        made = [_fake_result(operator, one, first) for one in flat(operator.template, result)]
        return None if not made else made[0] if len(made) == 1 else tuple(made)

    return fake


def _positional(operator: TorchOperator, values: tuple[Any, ...]) -> list[Any]:
    pairs = zip(operator.parameters, values, strict=True)
    return [_abstract(value) for one, value in pairs if not one.is_keyword_only]


def _named(operator: TorchOperator, values: tuple[Any, ...]) -> dict[str, Any]:
    pairs = zip(operator.parameters, values, strict=True)
    return {one.name: _abstract(value) for one, value in pairs if one.is_keyword_only}


def _abstract(value: Any) -> Any:
    torch = torch_package()
    if isinstance(value, torch.Tensor):
        return AbstractArray(
            tuple(value.shape), value.dtype, tuple(value.stride()), dense=value.is_contiguous
        )
    if isinstance(value, (list, tuple)):
        return [_abstract(one) for one in value]
    return value


def _first_tensor(values: Any) -> Any:
    torch = torch_package()
    for value in values:
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, (list, tuple)):
            found = _first_tensor(value)
            if found is not None:
                return found
    return None


def _fake_result(operator: TorchOperator, result: Any, first: Any) -> Any:
    """Make a tensor of an array that a body returned; return numbers unchanged."""
    if not isinstance(result, AbstractArray):
        return result
    if result.argument is not None or result.base is not None:
        which = operator.parameters[(result.argument or result.base or (0,))[0]].name
        raise TypeError(
            f"{operator.name} returns its argument {which} or a view of it: torch forbids "
            "operators whose outputs share memory with their inputs"
        )
    dtype = getattr(torch_package(), result.dtype.name)
    # Use the body's strides, because later kernels are compiled for them.
    strides = tuple(result.strides or ())
    return first.new_empty_strided(tuple(result.shape), strides, dtype=dtype)
