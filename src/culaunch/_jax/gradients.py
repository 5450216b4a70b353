"""A function's gradients for JAX, computed by its ``Function.backward``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._core import Function as CoreFunction
from culaunch._jax.package import jax_package
from culaunch._jax.plan import Plan, filled
from culaunch._jax.varying import axes_of, varying

if TYPE_CHECKING:
    from collections.abc import Callable


def differentiable(
    function: Any, plan: Plan, values: tuple[Any, ...], kinds: tuple[int, ...],
    call: Callable[..., Any],
) -> Any:  # fmt: skip
    """Give a call its gradients, or an error that explains how to define them."""
    jax = jax_package()
    gradient = function._gradient
    made = jax.custom_vjp(call)

    def forward(*arrays: Any) -> Any:
        if gradient is None:
            raise TypeError(f"{plan.name} has no gradient: define one with {plan.name}.backward")
        if not plan.is_functional:
            raise TypeError(
                f"{plan.name} has no gradient, because it writes or returns an argument: return "
                "new arrays"
            )
        if gradient.forward is None:
            outputs = made(*arrays)  # not `call`: gradients of gradients go through here
            return outputs, (arrays, outputs, ())
        results = gradient.forward.jax(*filled(values, kinds, list(arrays)))
        leaves = tuple(jax.tree_util.tree_leaves(results))
        count = len(plan.outputs)
        return leaves[:count], (arrays, leaves[:count], leaves[count:])

    def backward(kept: Any, grads: Any) -> Any:
        arrays, outputs, saved = kept
        arguments = dict(zip(plan.names, filled(values, kinds, list(arrays)), strict=True))
        wanted = gradient.inputs(grads, outputs, saved, arguments)
        compute = gradient.function
        if isinstance(compute, CoreFunction):
            compute = compute.jax  # type: ignore[attr-defined]
        result = compute(*wanted)
        found = list(result) if isinstance(result, (tuple, list)) else [result]
        return _for_each(jax, plan, kinds, arrays, found)

    made.defvjp(forward, backward)
    return made


def _for_each(jax: Any, plan: Plan, kinds: tuple[int, ...], arrays: Any, found: list[Any]) -> Any:
    """Return a gradient for each array: zeros if it has none."""
    parameters = [i for i, kind in enumerate(kinds) if kind != -1]
    if len(found) != len(parameters):
        raise TypeError(
            f"the backward function of {plan.name} must return {len(parameters)} gradients, one "
            f"for each array parameter, or None (got {len(found)})"
        )
    flat: list[Any] = []
    for parameter, one in zip(parameters, found, strict=True):
        count = kinds[parameter]
        if count == 0:
            flat.append(one)
        else:
            items = count if count > 0 else -1 - count
            flat += [None] * items if one is None else list(one)
    return tuple(_gradient(jax, array, one) for array, one in zip(arrays, flat, strict=True))


def _gradient(jax: Any, array: Any, given: Any) -> Any:
    if not jax.numpy.issubdtype(array.dtype, jax.numpy.inexact):
        import numpy as np

        return np.zeros(array.shape, jax.dtypes.float0)
    found = jax.numpy.zeros_like(array) if given is None else given
    return varying(jax, found, axes_of(jax, [array]))
