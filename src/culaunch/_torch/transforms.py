"""Operators under the transformations of ``torch.func``: what each layer of them makes of a call.

torch calls this while a transformation is on, with the innermost one on top of its stack. A layer
takes its part of the tensors away, and calls the operator below it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from culaunch._torch.package import torch_package
from culaunch._torch.tracked import call_tracked, no_gradient, no_tangent, tensors_of
from culaunch._torch.written_tensors import written_tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._torch.operator import TorchOperator


def transformed(operator: TorchOperator, /, *args: Any, **keywords: Any) -> Any:
    """Call an operator while a transformation is on.

    Raises
    ------
    TypeError
        If a derivative is asked for that there is none of: torch would take it for zero.
    """
    torch = torch_package()
    interpreter = torch._functorch.pyfunctorch.retrieve_current_functorch_interpreter()
    # A tensor may have outlived the transformation that wrapped it: it is an ordinary one again.
    call = _Call(operator, interpreter, args, keywords).mapped(torch._C._functorch.unwrap_if_dead)
    return _LAYERS[interpreter.key().name](call)


class _Call:
    """A call of an operator that reaches a layer."""

    def __init__(self, operator: TorchOperator, interpreter: Any, args: Any, keywords: Any) -> None:
        self.operator = operator
        self.interpreter = interpreter
        self.level: int = interpreter.level()
        self.args = args
        self.keywords = keywords

    def mapped(self, change: Any) -> _Call:
        """Return the same call, with each tensor replaced by the result of `change`."""
        args, keywords = _on_tensors(change, (self.args, self.keywords))
        return _Call(self.operator, self.interpreter, args, keywords)

    def run(self) -> Any:
        """Call the operator."""
        # Through the dispatcher, so the layer below, if any, gets its turn.
        return self.operator.overload(*self.args, **self.keywords)

    def tensors(self) -> Iterator[Any]:
        """Yield the tensors among the arguments."""
        return tensors_of((*self.args, *self.keywords.values()))

    def written(self) -> list[Any]:
        """Return the tensors that it writes."""
        return [*written_tensors(self.operator, self.args, self.keywords)]

    def captured(self, what: str) -> TypeError:
        """Return the error for a written tensor that does not belong to this layer."""
        return TypeError(
            f"{self.operator.shown} writes a tensor that is not an argument of this {what}, so "
            "results computed from it would be wrong. Pass the tensor as an argument of the "
            "transformed function"
        )


# ---- the layers


def _gradient(call: _Call) -> Any:
    """Do the part of ``grad``, ``vjp``, ``jvp`` and the transformations built on them."""
    torch = torch_package()
    functorch, operator, level = torch._C._functorch, call.operator, call.level
    # In all layers at once: a tangent of a layer above would be lost below without a word.
    if any(map(_has_tangent, call.tensors())):
        raise no_tangent(operator)
    if any(one.requires_grad and _is_of(one, level) for one in call.tensors()):
        if operator.mutates:
            raise no_gradient(operator)
        return call_tracked(operator, operator.function._bind(call.args, call.keywords))
    written = call.written()
    # The write would happen below this layer, whose graph would keep the value from before.
    if not all(_is_of(one, level) for one in written):
        raise call.captured("transformation of torch.func")
    below = call.mapped(lambda one: functorch._unwrap_for_grad(one, level))
    with call.interpreter.lower():
        result = below.run()
    for one in written:  # where autograd looks on this layer
        torch.autograd.graph.increment_version(one)
    return _on_tensors(lambda one: functorch._wrap_for_grad(one, level), result)


def _batch(call: _Call) -> Any:
    """Do the part of ``vmap``: a call for each row."""
    torch = torch_package()
    functorch, operator, level = torch._C._functorch, call.operator, call.level
    written = {id(one) for one in call.written()}

    def dimension(tensor: Any) -> Any:
        return functorch._unwrap_batched(tensor, level)[1]

    def row(index: int, tensor: Any) -> Any:
        value, where = functorch._unwrap_batched(tensor, level)
        value = value if where is None else value.select(where, index)
        # As a tensor without a batch would be.
        return value if id(tensor) in written else value.contiguous()

    if all(dimension(one) is None for one in call.tensors()):
        with call.interpreter.lower():
            return call.run()
    if any(dimension(one) is None for one in call.written()):
        raise TypeError(
            f"{operator.shown} writes {', '.join(operator.mutates)}, which must be batched in "
            "this torch.vmap: add it to in_dims"
        )
    if any(one not in (None, "Tensor") for one in operator.outputs):
        raise TypeError(
            f"{operator.shown} returns numbers, but torch.vmap accepts only tensors: return arrays"
        )
    count = call.interpreter.batch_size()
    with call.interpreter.lower():
        rows = [call.mapped(partial(row, i)).run() for i in range(count)]
        if not operator.outputs:
            return None
        # Without rows there is nothing to stack, but the result still has the shape and the type of
        # a row.
        shown = rows if count else [call.mapped(partial(_shape_of_row, level)).run()]
        is_tuple = isinstance(shown[0], (tuple, list))
        columns = zip(*shown, strict=True) if is_tuple else (shown,)
        device = next(call.tensors()).device
        stacks = [torch.stack(column)[:count] for column in columns]
        if not count:
            stacks = [torch.empty_like(one, device=device) for one in stacks]
    # The rows lie along the first dimension, even if those of the arguments did not.
    results = tuple(functorch._add_batch_dim(one, 0, level) for one in stacks)
    return results if is_tuple else results[0]


def _functionalized(call: _Call) -> Any:
    """Do the part of ``functionalize``: a written tensor becomes another tensor."""
    torch = torch_package()
    ways = torch._functorch.eager_transforms
    written = call.written()
    if not all(map(torch._is_functional_tensor, written)):
        raise call.captured("torch.func.functionalize")
    reapply = call.interpreter.functionalize_add_back_views()

    def value(tensor: Any) -> Any:
        return ways._unwrap_all_tensors_from_functional(tensor, reapply_views=reapply)

    values = {id(one): value(one) for one in written}
    with call.interpreter.lower():
        # The written tensor is another one, which replaces the first one in the graph.
        copies = {which: one.clone() for which, one in values.items()}
        result = call.mapped(lambda one: copies.get(id(one), value(one))).run()
    for one in written:
        torch._functionalize_replace(one, copies[id(one)])
        torch._functionalize_commit_update(one)
        torch._functionalize_sync(one)
    return ways._wrap_all_tensors_to_functional(result, level=call.level)


def _shape_of_row(level: int, tensor: Any) -> Any:
    """Return a row of an empty batch, without its data."""
    value, where = torch_package()._C._functorch._unwrap_batched(tensor, level)
    value = value.to("meta")
    if where is None:
        return value
    shape = [size for i, size in enumerate(value.shape) if i != where]
    return value.new_empty(shape)


_LAYERS = {
    "Grad": _gradient,
    "Jvp": _gradient,
    "Vmap": _batch,
    "Functionalize": _functionalized,
}


# ---- tensors


def _on_tensors(change: Any, values: Any) -> Any:
    torch = torch_package()
    return torch.utils._pytree.tree_map_only(torch.Tensor, change, values)


def _is_of(tensor: Any, level: int) -> bool:
    """Tell whether a layer of gradients has made a tensor."""
    functorch = torch_package()._C._functorch
    return bool(
        functorch.is_gradtrackingtensor(tensor) and functorch.maybe_get_level(tensor) == level
    )


def _has_tangent(tensor: Any) -> bool:
    """Tell whether a forward-mode derivative would have to go through a call with a tensor."""
    forward_ad = torch_package().autograd.forward_ad
    if forward_ad._current_level < 0:
        return False
    return any(forward_ad.unpack_dual(one).tangent is not None for one in _layers(tensor))


def _layers(tensor: Any) -> Iterator[Any]:
    """Yield the tensors that transformations have made from a tensor, recursively."""
    functorch = torch_package()._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        yield tensor
        tensor = functorch.get_unwrapped(tensor)
    yield tensor
