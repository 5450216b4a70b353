"""torch tensors whose memory does not hold their values. The extension calls this."""

# ruff: noqa: SLF001 - what a tensor is without its memory, torch tells in private words alone

from __future__ import annotations

import sys
from typing import Any

from culaunch._base.values import type_name


def is_lazy(tensor: Any) -> bool:
    """Ask a tensor whether it is a lazy conjugate or a lazy negative of its memory."""
    return bool(tensor.is_conj() or tensor.is_neg())


def check_gradient(what: str, tensor: Any) -> None:
    """Refuse a tensor that autograd tracks, in reverse or forward mode.

    Raise TypeError if autograd tracks it; `what` names the argument.
    """
    torch = sys.modules["torch"]
    if has_tangent(tensor):
        raise TypeError(
            f"{what} has a tangent, but the function has no forward-mode derivative, so autograd "
            "would treat the result as a constant. Detach the tensor, or call the function in a "
            "torch.autograd.Function that has a jvp (an operator, cl.frameworks.torch_op, has "
            "reverse mode)"
        )
    if tensor.requires_grad and torch.is_grad_enabled():
        raise TypeError(
            f"{what} requires grad, but the function has no derivative, so autograd would treat "
            "the result as a constant. Pass tensor.detach(), call the function under "
            "torch.no_grad(), or call it in a torch.autograd.Function that has the derivative"
        )


def has_tangent(tensor: Any) -> bool:
    """Tell whether a forward-mode derivative would go through the computation."""
    torch = sys.modules["torch"]
    forward_ad = torch.autograd.forward_ad
    if forward_ad._current_level < 0 or not torch._C._is_fwd_grad_enabled():
        return False
    return forward_ad.unpack_dual(tensor).tangent is not None


def refusal(what: str, tensor: Any) -> str:
    """Say why a tensor cannot be an argument; `what` names the argument."""
    problem, remedy = _problem(tensor)
    return (
        f"{what} must own plain memory that holds its values (got a {type_name(tensor)} that "
        f"{problem}): {remedy}"
    )


def _problem(tensor: Any) -> tuple[str, str]:
    for name, problem, remedy in _PROBLEMS:
        if _says(tensor, name):
            return problem, remedy
    # After the checks that work on any tensor, because each of the following is more expensive.
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if layout != "torch.strided":
        return f"has the layout {layout}", "pass the dense tensors that it consists of"
    torch = sys.modules["torch"]
    if isinstance(tensor, _class("torch._subclasses.fake_tensor", "FakeTensor")):
        return "is fake: it has a shape and a type, but no data", "pass a tensor with data"
    if _says(torch._C._functorch, "is_functorch_wrapped_tensor", tensor):
        return (
            "belongs to a transformation, such as vmap or grad, and has no memory of its own",
            "make the launch an operator (torch.library.custom_op) with rules for them",
        )
    try:
        tensor.__dlpack__()
    except Exception as error:  # noqa: BLE001 - torch's own word, without its trace
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return f"torch does not export: {reason}", "pass a dense tensor of a plain type"
    return "has no memory, or has freed it", "pass a tensor with data"


_PROBLEMS = (
    (
        "is_conj",
        "is a lazy conjugate: its memory holds the numbers before conjugation",
        "pass tensor.resolve_conj()",
    ),
    (
        "is_neg",
        "is a lazy negative: its memory holds the numbers before negation",
        "pass tensor.resolve_neg()",
    ),
    ("is_meta", "is on the meta device: it has a shape, but no data", "pass a tensor with data"),
    ("is_quantized", "is quantized", "pass tensor.int_repr() and the scale, or dequantize()"),
    ("is_nested", "is nested", "pass the dense tensors that it consists of"),
)


def _says(owner: Any, name: str, *args: Any) -> bool:
    try:
        value = getattr(owner, name)
        return bool(value(*args) if callable(value) else value)
    except Exception:  # noqa: BLE001 - no answer is no
        return False


def _class(module: str, name: str) -> Any:
    """Return a class of a loaded module, or an empty tuple, which matches nothing."""
    return getattr(sys.modules.get(module), name, ())
