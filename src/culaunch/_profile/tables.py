"""A profile as a table, for terminals and notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.html import html_table
from culaunch._base.units import scaled_text, time_text
from culaunch._base.values import counted

if TYPE_CHECKING:
    from culaunch._profile.kernel_profile import KernelProfile
    from culaunch._profile.listing import Listing

_TITLES = ("calls", "device", "total", "host", "bytes", "bandwidth", "kernel")
_EMULATED = "emulated: the times of a device, registers and occupancy are not known"
_NO_TIME = "-"


def as_text(profile: Listing) -> str:
    """Return a profile as lines: a row for each kernel, and what limits it below.

    Parameters
    ----------
    profile : Listing
    """
    rows = [_TITLES, *((*_numbers(row), _printable(row.name)) for row in profile.kernels)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_TITLES) - 1)]
    lines = [_heading(profile)]
    below = [[], *(_details(row) for row in profile.kernels)]
    for row, details in zip(rows, below, strict=True):
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=True)]
        lines.append("  ".join((*cells, row[-1])))
        indent = " " * (sum(widths) + 2 * len(widths) + 2)
        lines += [indent + detail for detail in details]
    return "\n".join([*(lines if profile.kernels else lines[:1]), *_notes(profile)])


def as_html(profile: Listing) -> str:
    """Return a profile as a table in HTML.

    Parameters
    ----------
    profile : Listing
    """
    titles = (
        "kernel", "calls", "grid", "block", "device (median)", "total", "host (median)",
        "argument bytes", "bandwidth", "registers", "shared memory", "local memory",
        "occupancy", "limited by", "one more block",
    )  # fmt: skip
    rows = []
    for row in profile.kernels:
        calls, device, total, host, size, bandwidth = _numbers(row)
        rows.append(
            (row.name, int(calls.replace(",", "")), _dims(row.grid), _dims(row.block), device,
             total, host, size, bandwidth, row.registers,
             row.shared_memory + row.static_shared, row.local_bytes, _occupancy(row),
             " and ".join(row.limited_by), row.hint)
        )  # fmt: skip
    return html_table(titles, rows, _heading(profile), "\n".join(_notes(profile)))


def _heading(profile: Listing) -> str:
    count = len(profile.launches)
    devices = sorted({row.device for row in profile.kernels})
    where = f" on {', '.join(devices)}" if devices else ""
    return f"{count:,} launch{'es' if count != 1 else ''}{where}"


def _notes(profile: Listing) -> list[str]:
    notes = [_EMULATED] if profile.is_emulated else []
    states: dict[str, int] = {}
    for launch in profile.launches:
        states[launch.state] = states.get(launch.state, 0) + 1
    words = {
        "captured": "captured into a graph, which ran nothing",
        "refused": "refused by the driver",
        "lost": "lost, because the device failed",
        "untimed": "not timed" if not profile.is_emulated else "",
    }
    notes += [
        f"{states[state]:,} {text}" for state, text in words.items() if state in states and text
    ]
    errors = sorted({launch.error for launch in profile.launches if launch.error})
    notes += [f"the driver reported {error}" for error in errors]
    if profile.omitted:
        notes.append(f"launches past the limit, counted but not shown: {profile.omitted:,}")
    return notes


def _numbers(row: KernelProfile) -> tuple[str, str, str, str, str, str]:
    device = row.device_time
    bandwidth = _NO_TIME
    if row.bandwidth is not None:
        bandwidth = f"{scaled_text(row.bandwidth)}B/s"
        if row.bandwidth_fraction is not None:
            bandwidth += f" ({row.bandwidth_fraction:.0%})"
    return (
        f"{row.calls:,}",
        _NO_TIME if device is None else time_text(device),
        _NO_TIME if device is None else time_text(row.total_time),
        _NO_TIME if row.host_time is None else time_text(row.host_time),
        _NO_TIME if row.argument_bytes is None else f"{scaled_text(row.argument_bytes)}B",
        bandwidth,
    )


def _details(row: KernelProfile) -> list[str]:
    if not any(row.grid):
        return []
    uses = [f"grid {_dims(row.grid)}", f"block {_dims(row.block)}"]
    if row.registers is not None:
        uses.append(f"{row.registers} registers")
    uses.append(f"{row.shared_memory + row.static_shared:,} bytes of shared memory")
    if row.local_bytes is not None:
        uses.append(f"{row.local_bytes:,} bytes of local memory")
    lines = [", ".join(uses)]
    if row.occupancy is not None:
        text = f"occupancy {_occupancy(row)}"
        if row.limited_by:
            text += f", limited by {' and '.join(row.limited_by)}"
        if row.hint:
            text += f"; {row.hint}"
        lines.append(text)
    return lines


def _occupancy(row: KernelProfile) -> str:
    if row.occupancy is None:
        return ""
    return f"{row.occupancy:.0%} ({counted(row.active_blocks or 0, 'block')})"


def _dims(dims: tuple[int, int, int]) -> str:
    used = dims if dims[2] != 1 else dims[:2] if dims[1] != 1 else dims[:1]
    return "x".join(map(str, used)) if any(dims) else ""


def _printable(name: str) -> str:
    """Return a name on one line: an image may have any bytes in its names."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
