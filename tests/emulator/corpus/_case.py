"""One kernel with its arguments and the answer, for whichever driver runs it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """A launch and what it should leave behind.

    Parameters
    ----------
    name : str
        Unique in the corpus.
    ptx : callable
        Returns the PTX.
    kernel : str
        The kernel's name in it.
    arguments : callable
        Takes a NumPy generator; returns the arguments, NumPy arrays and scalars.
    expected : callable
        Takes the arguments as they were before the launch; returns the arrays that should come
        out, by the argument's index.
    rtol, atol : float
        How far from `expected` a result may be.
    same_on_gpu : bool
        Whether the emulator and a GPU should agree bit for bit. Not so where the order of float
        additions, or the bits of an approximation, are the hardware's own.
    """

    name: str
    ptx: Callable[[], str]
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: Callable[[np.random.Generator], list[Any]]
    expected: Callable[[list[Any]], dict[int, np.ndarray]]
    shared: int = 0
    cooperative: bool = False
    rtol: float = 0.0
    atol: float = 0.0
    same_on_gpu: bool = True

    def make(self, seed: int = 0) -> list[Any]:
        """Make the arguments of one launch."""
        return self.arguments(np.random.default_rng(seed))

    def check(self, before: list[Any], after: list[Any]) -> None:
        """Compare what a launch left in its arguments with what it should have."""
        for index, wanted in self.expected(before).items():
            got = after[index]
            if self.rtol or self.atol:
                np.testing.assert_allclose(
                    got, wanted, rtol=self.rtol, atol=self.atol, err_msg=f"argument {index}"
                )
            else:
                np.testing.assert_array_equal(got, wanted, err_msg=f"argument {index}")


@functools.cache
def cuda(file: str, *options: str) -> str:
    """Compile a source of the corpus to PTX for sm_80."""
    import culaunch as cl

    source = (HERE / "cuda" / file).read_text()
    image = cl.compile(
        source, arch="compute_80", std="c++17", line_info=True, extra_options=options, name=file
    )
    return image.data.rstrip(b"\0").decode()


@functools.cache
def recorded(file: str) -> str:
    """Return PTX that is kept in the corpus."""
    return (HERE / "ptx" / file).read_text()


def from_cuda(file: str, *options: str) -> Callable[[], str]:
    """Return a source of PTX: a CUDA file of the corpus."""
    return functools.partial(cuda, file, *options)


def from_ptx(file: str) -> Callable[[], str]:
    """Return a source of PTX: a PTX file of the corpus."""
    return functools.partial(recorded, file)
