"""The contents of a file as text lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The records are those of culaunch._image.info, which stands above this module.

_TITLES = ("registers", "shared", "stack", "barriers", "threads", "cluster")
_WIDEST = 100  # characters of the names that set the alignment
_NARROWEST = 24  # characters of a name in a narrow terminal


def inspection_lines(inspection: Any, width: int | None = None) -> list[str]:
    """Return a heading, a summary of several images, and the tables of each image.

    Parameters
    ----------
    inspection : Inspection
    width : int, optional
        Shorten names to fit this many columns; by default they are whole.
    """
    lines = summary_lines(inspection)
    if len({(image.arch, image.format) for image in inspection.images}) == len(inspection.images):
        del lines[1:]  # each image has its own heading with the same facts
    for image in inspection.images:
        lines += ["", *image_lines(image, width)]
    return lines


def summary_lines(inspection: Any) -> list[str]:
    """Return a heading, and a row for each architecture and format."""
    count = len(inspection.images)
    what = f"{inspection.format}, {_count(count, 'image')}"
    heading = f"{inspection.path}: {what}" if inspection.path else what
    groups: dict[tuple[str, str], list[Any]] = {}
    for image in inspection.images:
        groups.setdefault((image.arch, image.format), []).append(image)
    rows = []
    for (arch, form), images in groups.items():
        kernels = {kernel.name for image in images for kernel in image.kernels}
        variables = {one.name for image in images for one in image.variables}
        numbers = (len(images), len(kernels), len(variables))
        size = _human(sum(image.size for image in images))
        rows.append((f"{arch}  {form}", *map(str, numbers), size))
    titles = ("architecture", "images", "kernels", "variables", "size")
    return [heading, "", *_table(titles, rows)] if rows else [heading]


def image_lines(image: Any, width: int | None = None) -> list[str]:
    """Return a heading, and tables of the kernels and the variables."""
    lines = [f"{image.arch}  {_facts(image)}"]
    inner = None if width is None else width - 2
    if image.kernels:
        lines += [f"  {line}" for line in kernel_lines(image.kernels, inner)]
    if image.variables:
        rows = [
            (one.demangled, "" if one.size is None else str(one.size)) for one in image.variables
        ]
        lines += [f"  {line}" for line in _table(("variable", "bytes"), rows, inner)]
    return lines


def kernel_lines(kernels: Sequence[Any], width: int | None = None) -> list[str]:
    """Return a row for each kernel; omit columns without any known value."""
    rows = [(_signature(kernel), *_cells(kernel)) for kernel in kernels]
    # PTX knows no registers: an empty column would only take room.
    shown = [0, *(i + 1 for i in range(len(_TITLES)) if any(row[i + 1] for row in rows))]
    titles = ("kernel", *_TITLES)
    cells = [[row[i] for i in shown] for row in rows]
    return list(_table([titles[i] for i in shown], cells, width))


def _table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None
) -> Iterator[str]:
    """Yield lines with the first column on the left and numbers on the right, never folded.

    With a width, a name that does not fit loses its middle, because both ends distinguish kernels.
    """
    widths = [max(len(row[i]) for row in (titles, *rows)) for i in range(1, len(titles))]
    if width is not None:
        room = max(width - sum(2 + one for one in widths), _NARROWEST)
        rows = [[_shortened(row[0], room), *row[1:]] for row in rows]
    first = max(len(row[0]) for row in (titles, *rows) if len(row[0]) <= _WIDEST or row is titles)
    for name, *cells in (titles, *rows):
        numbers = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        yield f"{name:<{first}}{numbers}".rstrip()


def _shortened(name: str, room: int) -> str:
    if len(name) <= room:
        return name
    end = (room - 3) // 3
    return f"{name[: room - 3 - end]}...{name[len(name) - end :]}"


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
    params = ", ".join(param.type or _bytes(param.size) for param in kernel.parameters)
    return f"{kernel.name}({params})"


def _bytes(count: int) -> str:
    return _count(count, "byte")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


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
