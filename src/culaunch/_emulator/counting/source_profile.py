"""Counts for each line of PTX and of the source: tables, HTML and JSON."""

from __future__ import annotations

import dataclasses
import html
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_path
from culaunch._base.outputs import write_output
from culaunch._base.values import counted
from culaunch._emulator.counting.argument_bytes import ArgumentCounts, argument_counts
from culaunch._emulator.counting.counts import Counts

if TYPE_CHECKING:
    import os

    from culaunch._emulator.counting.collector import Collector, KernelRecord


@dataclass
class LineCounts(Counts):
    """The numbers of one line, of PTX or of the source."""

    file: str = ""
    """The source file; empty for a line of PTX."""
    line: int = 0
    """The number of the line."""
    text: str = ""
    """The line; empty if the file cannot be read."""


@dataclass(frozen=True)
class KernelCounts:
    """The numbers of one kernel."""

    name: str
    """The name in the image."""
    launches: int
    """How many launches were counted."""
    total: Counts
    """The sum over all lines."""
    ptx: tuple[LineCounts, ...]
    """The executed lines of PTX, in order."""
    source: tuple[LineCounts, ...]
    """The executed lines of the source; empty without line information (``-lineinfo``)."""
    # The size of the different sectors of global memory that were read, and written. A cache of any
    # size moves at least these.
    read_bytes: int
    written_bytes: int
    arguments: tuple[ArgumentCounts, ...]
    """How many bytes of each argument that is an array were read, and written."""


class SourceProfile:
    """The counts of some launches: the result of :func:`culaunch.testing.profile`.

    ``print`` shows a table in a terminal, and notebooks show one in HTML.

    Examples
    --------
    >>> from culaunch import testing
    >>> total = testing.profile(kernel[1, 256], y, x, 2.0, 256).kernels[0].total
    >>> total.sectors == total.ideal_sectors
    True
    """

    def __init__(self, collector: Collector) -> None:
        self.kernels: tuple[KernelCounts, ...] = tuple(
            map(_kernel_counts, collector.records.values())
        )

    def annotate(self, source: str, file: str = "kernel.cu") -> SourceProfile:
        """Return the profile with the text of a source that was compiled in another process.

        Parameters
        ----------
        source : str
            The text that was compiled.
        file : str, optional
            The last part of the name of its lines' file: `name` of :func:`culaunch.compile`.

        Returns
        -------
        SourceProfile
            Another one, with the same numbers.

        Raises
        ------
        ValueError
            If no line is in a file of this name.

        Examples
        --------
        >>> print(testing.profile(kernel[1, 256], y, x, 2.0, 256).annotate(SOURCE))
        """
        text = source.splitlines()
        files = {Path(line.file).name for kernel in self.kernels for line in kernel.source}
        if file not in files:
            listed = (
                ", ".join(sorted(files)) or "without line information, so compile with line_info"
            )
            raise ValueError(f"file must be a file of the profile (got {file!r}): {listed}")
        other = object.__new__(SourceProfile)
        other.kernels = tuple(
            dataclasses.replace(
                kernel,
                source=tuple(
                    dataclasses.replace(line, text=_line(text, line.line))
                    if Path(line.file).name == file
                    else line
                    for line in kernel.source
                ),
            )
            for kernel in self.kernels
        )
        return other

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON.

        Returns
        -------
        dict
            The fields, in a form that JSON can hold.
        """
        return {"kernels": [dataclasses.asdict(kernel) for kernel in self.kernels]}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the lines with their numbers as a page of HTML.

        Parameters
        ----------
        path : path
            The file, such as ``profile.html``.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        page = f'<!DOCTYPE html><meta charset="utf-8"><title>Counts</title>{self._repr_html_()}'
        write_output(checked_path("path", path), page.encode())

    def __str__(self) -> str:
        return "\n\n".join("\n".join(_as_text(kernel)) for kernel in self.kernels) or "no launch"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(map(_as_html, self.kernels)) or "<p>no launch</p>"


def _kernel_counts(record: KernelRecord) -> KernelCounts:
    image = record.kernel.module.image
    total, lines, sources = Counts(), [], {}
    texts: dict[str, list[str]] = {}
    for number in sorted(record.lines):
        instruction, counts = record.lines[number]
        total.add(counts)
        line = LineCounts(line=number, text=image.tokens.line_text(number).strip())
        line.add(counts)
        lines.append(line)
        if instruction.loc is not None:
            index, at = instruction.loc
            file = image.syntax.files.get(index, f"file {index}")
            if (file, at) not in sources:
                text = image.source_text(file, at)
                if not text:
                    lines_of = texts[file] = texts[file] if file in texts else _lines_of(file)
                    text = _line(lines_of, at)
                sources[file, at] = LineCounts(file=file, line=at, text=text)
            sources[file, at].add(counts)
    return KernelCounts(
        record.kernel.entry.name,
        len(record.launches),
        total,
        tuple(lines),
        tuple(sources[key] for key in sorted(sources)),
        record.read.bytes,
        record.written.bytes,
        argument_counts((key[0], array) for key, array in record.arrays.items()),
    )


def _lines_of(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _line(text: list[str], number: int) -> str:
    return text[number - 1].strip() if 0 < number <= len(text) else ""


def _shown(line: LineCounts) -> str:
    return f"{line.line:>4}  {line.text or Path(line.file).name}"


_TITLES = ("warps", "lanes", "divergent", "sectors", "ideal", "conflicts", "atomics", "flops")


def _cells(counts: Counts) -> tuple[str, ...]:
    numbers = (
        counts.divergent, counts.sectors, counts.ideal_sectors, counts.bank_conflicts,
        counts.atomic_passes, counts.flops,
    )  # fmt: skip
    return (
        f"{counts.warps:,}",
        f"{counts.active_lanes:.1f}",
        *(f"{number:,}" if number else "-" for number in numbers),
    )


def _rows(kernel: KernelCounts) -> list[tuple[tuple[str, ...], str]]:
    lines = kernel.source or kernel.ptx
    return [(_cells(line), _shown(line)) for line in lines]


def _heading(kernel: KernelCounts) -> list[str]:
    """Return the lines above the table."""
    launches = counted(kernel.launches, "launch")
    moved = f"{kernel.read_bytes:,} bytes read and {kernel.written_bytes:,} written"
    kinds = sorted(kernel.total.kinds.items(), key=lambda pair: -pair[1])
    return [
        f"{kernel.name}: {launches}, {moved} (different sectors of 32 bytes)",
        f"instructions: {', '.join(f'{number:,} {kind}' for kind, number in kinds)}",
        *map(str, kernel.arguments),
    ]


def _as_text(kernel: KernelCounts) -> list[str]:
    rows = [(_TITLES, "line"), (_cells(kernel.total), "  all"), *_rows(kernel)]
    widths = [max(len(cells[i]) for cells, _ in rows) for i in range(len(_TITLES))]
    return [
        *_heading(kernel),
        *("  ".join((*map(str.rjust, cells, widths), text)).rstrip() for cells, text in rows),
    ]


def _as_html(kernel: KernelCounts) -> str:
    lines = kernel.source or kernel.ptx
    most = max((line.warps for line in lines), default=0) or 1
    head = "".join(f"<th>{title}</th>" for title in (*_TITLES, "line"))
    body = []
    for line in lines:
        numbers = "".join(f'<td style="text-align:right">{cell}</td>' for cell in _cells(line))
        text = html.escape(_shown(line))
        # The darker a line is, the more often it runs.
        shade = f"background:rgba(255,120,0,{0.4 * line.warps / most:.2f})"
        body.append(
            f"<tr>{numbers}"
            f'<td style="text-align:left;white-space:pre;font-family:monospace;{shade}">{text}</td>'
            "</tr>"
        )
    caption = "<br>".join(map(html.escape, _heading(kernel)))
    return (
        f"<table><caption>{caption}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )
