"""Triton kernels: native launches, ahead-of-time compilation, and shipping without Triton.

``python -m culaunch.triton script.py`` runs a program with :func:`install` in force.

Examples
--------
>>> from culaunch.triton import install
>>> with install():  # doctest: +SKIP
...     my_triton_program()
"""

from __future__ import annotations

from culaunch._triton import (
    Installation,
    KernelReport,
    KernelSet,
    NativeKernel,
    Report,
    TensorDescriptor,
    compile,  # noqa: A004
    from_cache,
    from_compiled,
    install,
    native,
    report,
    uninstall,
)

__all__ = [
    "Installation",
    "KernelReport",
    "KernelSet",
    "NativeKernel",
    "Report",
    "TensorDescriptor",
    "compile",
    "from_cache",
    "from_compiled",
    "install",
    "native",
    "report",
    "uninstall",
]


def __dir__() -> list[str]:
    return list(__all__)  # for completion, without the names imported here


if __name__ == "__main__":
    import sys

    from culaunch._triton.program.run import main

    sys.exit(main(sys.argv[1:]))
