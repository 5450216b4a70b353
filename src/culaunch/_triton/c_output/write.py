"""Write a saved set as C: the source, the header, and perhaps an object with the images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from culaunch._base.checks import checked_path
from culaunch._base.outputs import write_outputs
from culaunch._base.values import spell
from culaunch._triton.c_output.c_set import CSet
from culaunch._triton.c_output.header import header_text
from culaunch._triton.c_output.names import c_identifier, check_c_name

if TYPE_CHECKING:
    import os

    from culaunch._triton.saved.set import SavedSet


def write_c(
    kernels: SavedSet,
    path: str | os.PathLike[str],
    name: str | None = None,
    prefix: str = "",
    *,
    as_object: bool = False,
    machine: str | None = None,
) -> list[Path]:
    """Write a source, a header, and perhaps an object; see :meth:`KernelSet.write_c`."""
    text = checked_path("path", path)
    if text.endswith((".h", "/")):
        raise ValueError(
            f"write_c takes the path of the source, such as scale.c (got {text!r:.200})"
        )
    base = text.removesuffix(".c")
    source, header = Path(f"{base}.c"), Path(f"{base}.h")
    if not isinstance(prefix, str):
        raise TypeError(f"prefix must be a str (got {spell(prefix)})")
    if machine is not None and not as_object:
        raise ValueError(
            "machine applies to an object with the images: set as_object=True, too (got "
            f"{machine!r:.60})"
        )
    if name is not None or prefix:
        own = check_c_name(name) if name is not None else c_identifier(kernels.name)
        name = check_c_name(prefix + own, "prefix" if prefix else "name")
    output = CSet(kernels, name, as_object)
    # Build all texts before writing any. A refusal then leaves no partial output, and no source
    # beside the header of another set.
    pieces = {source: output.source(header.name).encode(), header: header_text(output).encode()}
    if as_object:
        pieces[Path(f"{base}_images.o")] = output.images.object_file(machine)
    write_outputs({str(target): piece for target, piece in pieces.items()})
    return list(pieces)
