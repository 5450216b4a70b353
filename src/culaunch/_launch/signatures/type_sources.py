"""The types of a kernel's parameters, from the cheapest source."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culaunch._errors import MissingDependencyError
from culaunch._image import mangled_param_types

if TYPE_CHECKING:
    from culaunch._image import Image

# Template arguments, and the return type, which is void for every kernel.
_TEMPLATE = re.compile(r"^_Z.*I.*Ev", re.DOTALL)


def recorded_types(image: Image, name: str) -> tuple[tuple[str | None, ...] | None, str]:
    """Return the types of a kernel's parameters, and their source.

    The image is read only if the name has no types. Only PTX contains types; a cubin does not.
    """
    types: tuple[str | None, ...] | None = mangled_param_types(name)
    if types is not None:
        return types, "name"
    if name in image.signatures:
        return image.signatures[name], "image"
    if image.format != "cubin":
        from culaunch._image import embedded_ptx, ptx_param_types

        try:
            for text in embedded_ptx(image):
                types = ptx_param_types(text, name)
                if types is not None:
                    return types, "ptx"
        except MissingDependencyError:
            pass  # a compressed entry: types stay unknown, but sizes are checked
    return None, "layout"


def is_template(name: str) -> bool:
    """Tell whether a mangled name belongs to a template instance: it includes the result type."""
    return _TEMPLATE.search(name) is not None
