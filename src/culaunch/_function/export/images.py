"""The images of a library's kernels, each embedded once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._function.export.names import text_literal

if TYPE_CHECKING:
    from culaunch._image import Image
    from culaunch._launch.modules.module import Kernel


class Images:
    """Names each image.

    Attributes
    ----------
    named : dict[str, Image]
    """

    def __init__(self, prefix: str) -> None:
        self.named: dict[str, Image] = {}
        self._prefix = prefix
        self._known: dict[bytes, str] = {}

    def kernel(self, kernel: Kernel) -> str:
        """Return the C++ expression of a kernel."""
        image = kernel.module.image
        # Look up by contents: separately compiled modules may have the same image.
        name = self._known.get(image.data)
        if name is None:
            name = self._known[image.data] = f"{self._prefix}_{len(self.named)}"
            self.named[name] = image
        return f"CULAUNCH_GET_KERNEL({name}, {text_literal(kernel.name)})"
