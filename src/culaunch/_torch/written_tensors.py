"""The tensors that a call of an operator writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._torch.package import torch_package

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from culaunch._torch.operator import TorchOperator


def written_tensors(
    operator: TorchOperator, args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> Iterator[Any]:
    """Yield the tensors that a call writes."""
    tensor_type = torch_package().Tensor
    names = [one.name for one in operator.parameters]
    given = {**dict(zip(names, args, strict=False)), **keywords}
    for name in operator.mutates:
        value = given.get(name)
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, tensor_type):
                yield one
