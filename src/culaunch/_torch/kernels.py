"""The entries of an operator in torch's dispatcher, before it reaches the function.

For a plain call, each of these does its work and calls the function natively: see
``csrc/torch/operator_object.cpp``. This module serves all other calls: tensors without data,
subclasses, modes, and calls that record a gradient.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

from culaunch._core import TorchOperator as CoreTorchOperator
from culaunch._launch.torch.tensor import has_tangent
from culaunch._torch.package import torch_package
from culaunch._torch.tracked import call_tracked, no_gradient, no_tangent, tensors_of
from culaunch._torch.transforms import transformed
from culaunch._torch.written_tensors import written_tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._torch.operator import TorchOperator


def register(operator: TorchOperator, library: Any) -> None:
    """Register the layers above the implementation of an operator."""
    name = operator.name.partition("::")[2]
    ways = {"Autograd": Autograd(operator).call}
    if operator.mutates:
        ways["ADInplaceOrView"] = partial(_count, operator)
    for key, way in ways.items():
        kernel = CoreTorchOperator()
        operator._kernels.append((kernel, way))
        library.impl(name, kernel, key, with_keyset=True)
    library.impl(name, partial(transformed, operator), "FuncTorchDynamicLayerFrontMode")


class Autograd:
    """The autograd kernel, which records gradients, or their absence.

    Parameters
    ----------
    operator : TorchOperator
    """

    def __init__(self, operator: TorchOperator) -> None:
        self.operator = operator
        # The gradients that `recorded` was made for.
        self.gradients: Any = None
        self.recorded: Callable[..., Any] | None = None

    def call(self, keyset: Any, *args: Any, **keywords: Any) -> Any:
        """Call the operator below autograd.

        Raises
        ------
        TypeError
            If a derivative is asked for that there is none of: torch would take it for zero.
        """
        torch, operator = torch_package(), self.operator
        tensors = [*tensors_of((*args, *keywords.values()))]
        if any(map(has_tangent, tensors)):
            raise no_tangent(operator)
        is_recorded = torch.is_grad_enabled() and any(one.requires_grad for one in tensors)
        if is_recorded and operator.mutates:  # a written argument would need a gradient, too
            raise no_gradient(operator)
        if self.recorded is None or self.gradients is not operator.gradients:
            self.gradients = operator.gradients
            self.recorded = self._record()
        if is_recorded and self.gradients is not None and self.gradients.forward is not None:
            return call_tracked(operator, operator.function._bind(args, keywords))
        return self.recorded(keyset, *args, **keywords)

    def _record(self) -> Callable[..., Any]:
        way: Any = importlib.import_module("torch._library.autograd")
        gradients = self.gradients
        info = (
            way.Info(self._refuse, None)
            if gradients is None
            else way.Info(gradients.backward, gradients.torch_setup)
        )
        return way.make_autograd_impl(self.operator.overload, info)  # type: ignore[no-any-return]

    def _refuse(self, *_: Any) -> Any:
        raise no_gradient(self.operator)


def _count(operator: TorchOperator, keyset: Any, *args: Any, **keywords: Any) -> Any:
    """Count the versions of the tensors that the operator writes, then call the layer below."""
    torch = torch_package()
    for one in written_tensors(operator, args, keywords):
        torch.autograd.graph.increment_version(one)
    below = keyset & torch._C._after_ADInplaceOrView_keyset
    with torch._C._AutoDispatchBelowADInplaceOrView():
        return operator.overload.redispatch(below, *args, **keywords)
