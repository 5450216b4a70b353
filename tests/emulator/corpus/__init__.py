"""Kernels with arguments and answers: the emulator's tests run them, and so can a GPU's.

``CASES`` is all of them. They need nothing of the emulator; CUDA sources are compiled by
``culaunch.compile``, Triton's PTX is kept as files (``record_triton.py`` makes them).
"""

from corpus._advanced import ADVANCED
from corpus._basics import BASICS
from corpus._case import Case
from corpus._cub import CUB
from corpus._groups import GROUPS
from corpus._language import LANGUAGE
from corpus._libraries import LIBRARIES
from corpus._math import MATH
from corpus._triton import TRITON
from corpus._warps import WARPS

CASES: tuple[Case, ...] = (
    *BASICS, *LANGUAGE, *WARPS, *MATH, *CUB, *GROUPS, *LIBRARIES, *ADVANCED, *TRITON,
)  # fmt: skip

__all__ = ["CASES", "LIBRARIES", "Case"]
