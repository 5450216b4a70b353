"""The counters of tensors' versions: by them autograd notices that what it kept was written."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culaunch._core import open_versions
from culaunch._launch.array import array_info
from culaunch._torch.package import torch_package

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from culaunch._torch.operator import TorchOperator


@functools.cache
def open_counters() -> None:
    """Let the extension count what operators write: both of its ways to a function do."""
    find_counters(native=True)


def find_counters(*, native: bool) -> None:
    """Find torch's function that counts; where it is missing, the extension calls Python."""
    torch = torch_package()
    libraries = (str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"),) if native else ()
    with without_modes(torch):
        tensor = torch.empty(1)
    array_info(tensor)  # the extension looks where a tensor is in its Python object
    # Tensors of inference mode lack it, and have no counter.
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView).raw_repr()
    open_versions(libraries, tensor, keys, torch.autograd.graph.increment_version)


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


@contextlib.contextmanager
def without_modes(torch: Any) -> Generator[None, None, None]:
    """Leave the modes and transformations that make other tensors than plain ones."""
    with torch.utils._python_dispatch._disable_current_modes(), torch._C._DisableFuncTorch():
        yield
