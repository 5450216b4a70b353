"""Operators of liger-kernel and flash-linear-attention on small inputs, forward and backward."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BATCH, TIME, HEADS, WIDTH = 1, 128, 2, 64


@dataclass(frozen=True)
class Operator:
    """One operator.

    Attributes
    ----------
    name : str
        The name of its library, a dot and its own name.
    call : callable
        Calls it on inputs that are leaves of the autograd graph, and returns its outputs.
    inputs : callable
        Makes the inputs with a generator of random numbers: ``inputs(Inputs)``.
    module : str
        What it is in.
    """

    name: str
    call: Callable[..., Any]
    inputs: Callable[[Inputs], tuple[Any, ...]]
    module: str

    def load(self) -> None:
        """Import its module."""
        importlib.import_module(self.module)

    def run(self, device: str, *, backward: bool = True) -> list[Any]:
        """Run it and give its outputs, and the gradients of its inputs."""
        import torch

        inputs = self.inputs(Inputs(device))
        outputs = list(tensors(self.call(*inputs)))
        if not backward:
            return outputs
        loss = sum(one.float().sum() for one in outputs if one.requires_grad)
        if isinstance(loss, torch.Tensor):
            loss.backward()
        grads = [one.grad for one in inputs if isinstance(one, torch.Tensor)]
        return [*outputs, *(one for one in grads if one is not None)]


class Inputs:
    """Makes inputs, the same in every run."""

    def __init__(self, device: str) -> None:
        import torch

        self._torch = torch
        self._device = device
        self._random = torch.Generator(device="cpu").manual_seed(0)

    def floats(self, *shape: int, dtype: Any = None, grad: bool = True, scale: float = 1.0) -> Any:
        """Make normal numbers, in float32 unless a type is given."""
        made = scale * self._torch.randn(*shape, generator=self._random)
        made = made.to(self._device, dtype or self._torch.float32)
        return made.requires_grad_(grad)

    def halves(self, *shape: int) -> Any:
        """Make normal numbers in bfloat16."""
        return self.floats(*shape, dtype=self._torch.bfloat16)

    def gates(self, *shape: int, dtype: Any = None) -> Any:
        """Make logarithms of numbers below one."""
        made = self._torch.nn.functional.logsigmoid(self.floats(*shape, grad=False))
        return made.to(dtype or self._torch.float32).detach().requires_grad_()

    def shares(self, *shape: int) -> Any:
        """Make numbers between zero and one, in bfloat16."""
        made = self.floats(*shape, grad=False).sigmoid().to(self._torch.bfloat16)
        return made.detach().requires_grad_()

    def unit(self, *shape: int) -> Any:
        """Make vectors of length one, in bfloat16."""
        made = self._torch.nn.functional.normalize(self.floats(*shape, grad=False), dim=-1)
        return made.to(self._torch.bfloat16).detach().requires_grad_()

    def number(self) -> Any:
        """Make one number, without a dimension."""
        return self.floats(1, grad=False)[0].clone().requires_grad_()

    def numbers(self, below: int, *shape: int) -> Any:
        """Make ints."""
        made = self._torch.randint(below, shape, generator=self._random)
        return made.to(self._device)

    def logs(self, *shape: int) -> Any:
        """Make logarithms of probabilities."""
        made = self.floats(*shape, grad=False).log_softmax(-1)
        return made.detach().requires_grad_()


def tensors(found: Any) -> Iterator[Any]:
    """Give the tensors among what an operator gave."""
    if hasattr(found, "requires_grad"):
        yield found
    elif isinstance(found, (list, tuple)):
        for one in found:
            yield from tensors(one)


def _liger(name: str, module: str, function: str, inputs: Any, *more: Any) -> Operator:
    def call(*given: Any) -> Any:
        made = getattr(importlib.import_module(f"liger_kernel.ops.{module}"), function)
        return made.apply(*given, *more)

    return Operator(f"liger.{name}", call, inputs, f"liger_kernel.ops.{module}")


def _fla(name: str, module: str, inputs: Any, **more: Any) -> Operator:
    def call(*given: Any) -> Any:
        function = getattr(importlib.import_module(f"fla.{module}"), name)
        _let_hopper_run()
        return function(*given, **more)

    return Operator(f"fla.{name}", call, inputs, f"fla.{module}")


def _let_hopper_run() -> None:
    """Let fla launch a kernel that Triton before 3.7.1 compiles wrongly for Hopper.

    The question is only whether both ways give the same numbers, right or wrong.
    """
    if module := sys.modules.get("fla.ops.common.chunk_o"):
        module.IS_NVIDIA_HOPPER = False  # type: ignore[attr-defined]


def _rows(x: Inputs) -> Any:
    return x.floats(32, 512)


def _qkv(x: Inputs) -> tuple[Any, Any, Any]:
    return tuple(x.halves(BATCH, TIME, HEADS, WIDTH) for _ in range(3))  # type: ignore[return-value]


def _normal(x: Inputs) -> tuple[Any, Any, Any]:
    shape = (BATCH, TIME, HEADS, WIDTH)
    return x.halves(*shape), x.unit(*shape), x.halves(*shape)


def _beta(x: Inputs) -> Any:
    return x.shares(BATCH, TIME, HEADS)


LIGER_OPERATORS = (
    _liger("rms_norm", "rms_norm", "LigerRMSNormFunction",
           lambda x: (_rows(x), x.floats(512)), 1e-6, 0.0, "llama", False),
    _liger("fused_add_rms_norm", "fused_add_rms_norm", "LigerFusedAddRMSNormFunction",
           lambda x: (_rows(x), _rows(x), x.floats(512)), 1e-6, 0.0, "llama", False),
    _liger("layer_norm", "layer_norm", "LigerLayerNormFunction",
           lambda x: (_rows(x), x.floats(512), x.floats(512)), 1e-6),
    _liger("group_norm", "group_norm", "LigerGroupNormFunction",
           lambda x: (x.floats(4, 8, 64), x.floats(8), x.floats(8)), 8, 4, 1e-6),
    _liger("poly_norm", "poly_norm", "LigerPolyNormFunction",
           lambda x: (_rows(x), x.floats(3), x.number()), 1e-6, False),
    _liger("swiglu", "swiglu", "LigerSiLUMulFunction", lambda x: (_rows(x), _rows(x))),
    _liger("geglu", "geglu", "LigerGELUMulFunction", lambda x: (_rows(x), _rows(x))),
    _liger("relu_squared", "relu_squared", "LigerReLUSquaredFunction", lambda x: (_rows(x),)),
    _liger("softmax", "softmax", "LigerSoftmaxFunction", lambda x: (_rows(x),)),
    _liger("sparsemax", "sparsemax", "LigerSparsemaxFunction", lambda x: (_rows(x),), -1),
    _liger("dyt", "dyt", "LigerDyTFunction",
           lambda x: (_rows(x), x.floats(1), x.floats(512), x.floats(512))),
    _liger("cross_entropy", "cross_entropy", "LigerCrossEntropyFunction",
           lambda x: (_rows(x), x.numbers(512, 32), None)),
    _liger("fused_linear_cross_entropy", "fused_linear_cross_entropy",
           "LigerFusedLinearCrossEntropyFunction",
           lambda x: (x.floats(32, 64), x.floats(512, 64), x.numbers(512, 32))),
    _liger("kl_div", "kl_div", "LigerKLDivLossFunction",
           lambda x: (x.logs(32, 512), x.logs(32, 512).exp().detach())),
    _liger("jsd", "jsd", "LigerJSDFunction",
           lambda x: (x.logs(32, 512), x.logs(32, 512).detach())),
    _liger("tvd", "tvd", "LigerTVDLossFunction",
           lambda x: (x.logs(32, 512).exp().detach().requires_grad_(),
                      x.logs(32, 512).exp().detach())),
    _liger("rope", "rope", "LigerRopeFunction",
           lambda x: (x.floats(1, 4, 32, 64), x.floats(1, 2, 32, 64),
                      x.floats(1, 32, 64, grad=False), x.floats(1, 32, 64, grad=False))),
)  # fmt: skip

FLA_OPERATORS = (
    _fla("chunk_kda", "ops.kda",
         lambda x: (*_normal(x), x.gates(BATCH, TIME, HEADS, WIDTH), _beta(x))),
    _fla("chunk_gla", "ops.gla", lambda x: (*_qkv(x), x.gates(BATCH, TIME, HEADS, WIDTH))),
    _fla("fused_recurrent_gla", "ops.gla",
         lambda x: (*_qkv(x), x.gates(BATCH, TIME, HEADS, WIDTH))),
    _fla("chunk_gated_delta_rule", "ops.gated_delta_rule",
         lambda x: (*_normal(x), x.gates(BATCH, TIME, HEADS), _beta(x))),
    _fla("fused_recurrent_gated_delta_rule", "ops.gated_delta_rule",
         lambda x: tuple(one.detach() for one in
                         (*_normal(x), x.gates(BATCH, TIME, HEADS))), ),
    _fla("parallel_attn", "ops.attn", _qkv),
    _fla("chunk_retention", "ops.retention", _qkv),
    _fla("fused_recurrent_retention", "ops.retention", _qkv),
    _fla("chunk_simple_gla", "ops.simple_gla",
         lambda x: (*_qkv(x), x.gates(BATCH, TIME, HEADS))),
    _fla("chunk_delta_rule", "ops.delta_rule", lambda x: (*_normal(x), _beta(x))),
    _fla("chunk_linear_attn", "ops.linear_attn", _qkv),
    _fla("chunk_hgrn", "ops.hgrn",
         lambda x: (x.floats(BATCH, TIME, WIDTH), x.gates(BATCH, TIME, WIDTH))),
    _fla("fused_recurrent_hgrn", "ops.hgrn",
         lambda x: (x.floats(BATCH, TIME, WIDTH), x.gates(BATCH, TIME, WIDTH))),
    _fla("chunk_rwkv6", "ops.rwkv6",
         lambda x: (*_qkv(x), x.gates(BATCH, TIME, HEADS, WIDTH), x.halves(HEADS, WIDTH))),
    _fla("parallel_based", "ops.based",
         lambda x: (x.halves(BATCH, TIME, HEADS, 16), x.halves(BATCH, TIME, HEADS, 16),
                    x.halves(BATCH, TIME, HEADS, WIDTH))),
    _fla("chunk_gsa", "ops.gsa",
         lambda x: (*_qkv(x), x.halves(BATCH, TIME, HEADS, 32), x.gates(BATCH, TIME, HEADS, 32))),
    _fla("l2norm", "modules.l2norm", lambda x: (x.halves(TIME, WIDTH),)),
    _fla("layer_norm", "modules.layernorm",
         lambda x: (_rows(x), x.floats(512), x.floats(512))),
    _fla("rms_norm", "modules.layernorm", lambda x: (_rows(x), x.floats(512), None)),
    _fla("swiglu", "modules.activations", lambda x: (_rows(x), _rows(x))),
    _fla("token_shift", "modules.token_shift", lambda x: (x.floats(BATCH, TIME, WIDTH),)),
)  # fmt: skip

# Those whose whole forward passes have a bar.
FORWARDS = (
    "fla.chunk_kda",
    "fla.fused_recurrent_gla",
    "fla.chunk_gated_delta_rule",
    "fla.parallel_attn",
)
# Those of the first calls in a fresh process.
FIRST = tuple(one.name for one in LIGER_OPERATORS[:14])
