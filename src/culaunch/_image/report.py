"""The contents of a file as text lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The records are those of culaunch._image.info, which stands above this module.

_TITLES = ("registers", "shared", "stack", "barriers", "threads", "cluster")
_WIDEST = 100  # of the names that others are aligned with


def inspection_lines(inspection: Any) -> list[str]:
    """Return a heading, and for each image a heading and a table of its kernels and variables."""
    count = len(inspection.images)
    what = f"{inspection.format}, {count} image{'' if count == 1 else 's'}"
    lines = [f"{inspection.path}: {what}" if inspection.path else what]
    for image in inspection.images:
        lines += ["", *image_lines(image)]
    return lines


def image_lines(image: Any) -> list[str]:
    """Return a heading, and tables of the kernels and the variables."""
    lines = [f"{image.arch}  {_facts(image)}"]
    if image.kernels:
        lines += [f"  {line}" for line in kernel_lines(image.kernels)]
    if image.variables:
        rows = [
            (one.demangled, "" if one.size is None else str(one.size)) for one in image.variables
        ]
        lines += [f"  {line}" for line in _table(("variable", "bytes"), rows)]
    return lines


def kernel_lines(kernels: Sequence[Any]) -> list[str]:
    """Return a row for each kernel; omit columns without any known value."""
    rows = [(_signature(kernel), *_cells(kernel)) for kernel in kernels]
    # PTX knows no registers: an empty column would only take room.
    shown = [0, *(i + 1 for i in range(len(_TITLES)) if any(row[i + 1] for row in rows))]
    titles = ("kernel", *_TITLES)
    return list(_table([titles[i] for i in shown], [[row[i] for i in shown] for row in rows]))


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield lines with the first column on the left and numbers on the right, never folded."""
    first = max(len(row[0]) for row in (titles, *rows) if len(row[0]) <= _WIDEST or row is titles)
    widths = [max(len(row[i]) for row in (titles, *rows)) for i in range(1, len(titles))]
    for name, *cells in (titles, *rows):
        numbers = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        yield f"{name:<{first}}{numbers}".rstrip()


def _facts(image: Any) -> str:
    facts = [image.format, _human(image.size)]
    if image.compressed:
        facts.append("compressed")
    if image.relocatable:
        facts.append("relocatable")
    if image.toolkit:
        facts.append(f"toolkit {image.toolkit}")
    return ", ".join(facts)


def _signature(kernel: Any) -> str:
    """Return the C++ spelling; for a name without one, the types or sizes that are known."""
    if kernel.demangled != kernel.name:
        return str(kernel.demangled)
    params = ", ".join(param.type or _bytes(param.size) for param in kernel.params)
    return f"{kernel.name}({params})"


def _bytes(count: int) -> str:
    return f"{count} byte{'' if count == 1 else 's'}"


def _cells(kernel: Any) -> list[str]:
    threads = ""
    if kernel.required_threads:
        threads = f"= {_dims(kernel.required_threads)}"
    elif kernel.max_threads:
        threads = f"<= {_dims(kernel.max_threads)}"
    cluster = ""
    if kernel.cluster:
        cluster = f"= {_dims(kernel.cluster)}"
    elif kernel.max_cluster_rank:
        cluster = f"<= {kernel.max_cluster_rank}"
    numbers = (kernel.registers, kernel.static_shared, kernel.stack, kernel.barriers)
    return [*("" if number is None else str(number) for number in numbers), threads, cluster]


def _dims(dims: tuple[int, int, int]) -> str:
    """Return ``128`` for (128, 1, 1), and ``16x16`` for (16, 16, 1)."""
    x, y, z = dims
    return f"{x}x{y}x{z}" if z > 1 else f"{x}x{y}" if y > 1 else str(x)


def _human(size: int) -> str:
    if size < 1 << 10:
        return _bytes(size)
    return f"{size / (1 << 10):.1f} KiB" if size < 1 << 20 else f"{size / (1 << 20):.1f} MiB"
