"""Calls of a function by torch's dispatcher: native if possible, otherwise through Python."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culaunch._core import TorchOperator as CoreTorchOperator
from culaunch._core import (
    bind_operator,
    open_plain_calls,
    open_torch,
    rebind_operator,
    thread_keys,
)
from culaunch._launch.arrays.array import array_info
from culaunch._launch.torch.modes import without_modes
from culaunch._launch.torch.versions import open_counters
from culaunch._launch.torch.words import words_of
from culaunch._torch.package import torch_package
from culaunch._torch.schema import CODES, given_outputs, given_parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._torch.operator import TorchOperator

# The devices of drivers. The emulator's memory is the CPU's.
_KEYS = ("CPU", "CUDA")
# The types in the stable interface since torch 2.10.
_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


def register(operator: TorchOperator, library: Any) -> None:
    """Register the implementation of an operator."""
    namespace, _, name = operator.name.partition("::")
    schema = operator.overload._schema
    missing = _missing()
    open_counters()
    open_plain()
    if missing is None:
        # The extension trusts these letters, so they come from the schema that torch has.
        parameters = given_parameters(operator.parameters, schema)
        number = bind_operator(
            _target(operator),
            namespace,
            name,
            "".join(one.code for one in parameters),
            tuple(one.name for one in parameters if one.is_keyword_only),
            "".join(map(CODES.__getitem__, given_outputs(schema))),
            _KEYS,
        )
        if number is not None:
            operator.dispatch = "native"
            operator._slot = number
            return
        missing = "a free slot, because 1024 operators exist already"
    operator.why_python = f"the native dispatch lacks {missing}"
    # Fall back to Python, which is slower and gives the same results. The kernel counts them.
    kernel = CoreTorchOperator()
    kernel._set_way(None, operator.call_flat, "", 0, False, len(schema.returns), (), False)
    for key in _KEYS:
        library.impl(name, kernel, key)


def replace(operator: TorchOperator) -> None:
    """Call another function for the operator from now on."""
    if operator._slot is not None:
        rebind_operator(operator._slot, _target(operator))


def _target(operator: TorchOperator) -> Callable[..., Any]:
    """Return the dispatcher's callable. It is the function if its result is the operator's."""
    # The extension itself omits None.
    return operator.function if operator.rebuild is None else operator.call_flat


@functools.cache
def _missing() -> str | None:
    """Name a missing part of this torch for operators without Python, or return None."""
    torch = torch_package()
    folder = Path(torch.__file__).parent / "lib"
    libraries = tuple(str(folder / f"lib{name}.so") for name in ("torch_cpu", "torch_python"))
    # The numbers of element types differ between versions. The stable interface has a function for
    # each.
    dtypes = tuple((f"aoti_torch_dtype_{name}", getattr(torch, name)) for name in _DTYPES)
    # The first tensor lets the extension find tensors in their Python objects, and allocate one to
    # compare.
    with without_modes(torch):
        tensor = torch.empty(1)
        array_info(tensor)
        return open_torch(libraries, tensor, dtypes)


def open_plain() -> str | None:
    """Find the state that shows whether a call is plain; name a missing part of this torch, if any.

    Inside a transformation the search fails, and is repeated with the next operator.
    """
    torch = torch_package()
    folder = Path(torch.__file__).parent / "lib"
    libraries = tuple(str(folder / f"lib{name}.so") for name in ("c10", "torch_cpu"))
    with without_modes(torch):
        tensor = torch.empty(1)
        array_info(tensor)
        try:
            host, gpu = words_of(torch, tensor)
        except Exception:  # noqa: BLE001 - a torch that names its keys otherwise
            return "names of dispatch keys that match"
    types = (torch.Tensor, torch.nn.Parameter)
    with torch.utils._python_dispatch._disable_current_modes():
        with torch.inference_mode():
            inference = thread_keys()
        return open_plain_calls(libraries, tensor, types, host | gpu, inference)
