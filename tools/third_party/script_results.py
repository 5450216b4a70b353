"""What scripts leave: read, and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def read(path: Path) -> dict[str, Any]:
    """Return the results of a script: tensors and texts by their place."""
    import torch

    found: dict[str, Any] = torch.load(path, weights_only=True)
    return found


def differences(wanted: dict[str, Any], found: dict[str, Any], *, exact: bool) -> dict[str, str]:
    """Return where results differ, and how: in a bit, or by more than rounding.

    Parameters
    ----------
    wanted, found : dict of str to (torch.Tensor or str)
        Results by where they stand.
    exact : bool
        Whether every bit counts; else numbers may differ by some rounding of their type.
    """
    lines = {path: f"{path}: only one way" for path in sorted(wanted.keys() ^ found.keys())}
    for path in wanted.keys() & found.keys():
        one, other = wanted[path], found[path]
        if isinstance(one, str) or isinstance(other, str):
            if exact and (type(one) is not type(other) or one != other):
                lines[path] = f"{path}: {one} and {other}"
        elif (one.dtype, one.shape) != (other.dtype, other.shape):
            lines[path] = f"{path}: {one.dtype} {one.shape} and {other.dtype} {other.shape}"
        elif _bits(one) != _bits(other) and (exact or not _near(one, other)):
            apart = (_wide(one) - _wide(other)).abs().nan_to_num().max().item()
            lines[path] = f"{path}: {one.dtype}, up to {apart:.3g} apart"
    return lines


def _bits(tensor: Any) -> bytes:
    import torch

    flat = tensor.contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy()) if flat.numel() else b""


def _near(one: Any, other: Any) -> bool:
    import torch

    if not one.is_floating_point() and not one.is_complex():
        return False
    rounding = {torch.float64: 1e-6, torch.float32: 2e-3, torch.complex64: 2e-3}.get(
        one.dtype, 3e-2
    )
    return torch.allclose(_wide(one), _wide(other), rtol=rounding, atol=rounding, equal_nan=True)


def _wide(tensor: Any) -> Any:
    """Return a tensor with the same numbers in a type that has room for a difference."""
    import torch

    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
