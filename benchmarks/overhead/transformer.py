"""The transformer block of the examples: as one function, and through Triton's own launches."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import culaunch as cl
from overhead.timing import python_burst

if TYPE_CHECKING:
    from overhead.bench import Bench
    from overhead.timing import Burst

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# The size of each kernel's parameters in bytes; Triton's have one or two pointers more.
_TRITON = {
    "rms_norm": (8, 8, 8, 4, 4), "rope": (8, 8, 8, 4), "append": (8,) * 6 + (4, 4),
    "swiglu": (8, 8, 4),
}  # fmt: skip
_CUDA = {"gemv": (8, 8, 8, 8, 4, 4), "attention": (8, 8, 8, 8, 4, 4, 4, 4)}


class Transformer:
    """The block, its kernels loaded: on a GPU, or on the null driver."""

    def __init__(self, bench: Bench) -> None:
        sys.path.insert(0, str(EXAMPLES))
        import function_transformer_block as example

        self.example = example
        device = "cpu" if bench.host_only else "cuda"
        self.arguments = example.make_arguments(device, is_small=bench.host_only)
        if bench.host_only:
            self._declare(bench)
            self.cuda = cl.load(bench.image)
        else:
            self.cuda = cl.load(cl.compile(example.SOURCE))

    def as_function(self) -> Burst:
        """Call the block as one function."""
        return self._burst(self.example.as_function(self.cuda))

    def as_triton(self) -> Burst:
        """Launch in Python: Triton's kernels by ``jit[grid]``, the others by culaunch's launchers.

        The latter are the cheapest launches of a CUDA kernel from Python.
        """
        return self._burst(self.example.as_triton(self.cuda))

    def _burst(self, call: Any) -> Burst:
        x, keys, values, weights, position = self.arguments
        result = call(*self.arguments)
        if tuple(result.shape) != tuple(x.shape):
            raise RuntimeError(f"wrong result, with shape {result.shape}")
        return python_burst(
            "call(x, keys, values, weights, position)", call=call, x=x, keys=keys, values=values,
            weights=weights, position=position,
        )  # fmt: skip

    def _declare(self, bench: Bench) -> None:
        """Tell the null driver which kernels there are, and Triton to launch nothing."""
        import triton
        from triton_dispatch import install_idle_driver

        hidden = 2 if tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 5) else 1
        own = {name: (*sizes, *[8] * hidden) for name, sizes in _TRITON.items()}
        for name, sizes in {**own, **_CUDA}.items():
            array = (ctypes.c_size_t * len(sizes))(*sizes)
            bench.null.fake_driver_declare(name.encode(), len(sizes), array)
        install_idle_driver(bench.capability)
