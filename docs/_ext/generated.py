"""Generate parts of pages when they are built.

A line ``<!-- made: NAME ARGUMENT ... -->`` becomes generated text, a block ``rooms`` a picture.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import benchmark_numbers
from bug_tables import planted_bugs, planted_totals, planted_words
from command_reference import command_reference
from cpp_reference import cpp_reference
from diagrams import diagram, rooms
from launch_chart import launch_chart
from launch_options import launch_flags, launch_options

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_LINE = re.compile(r"^<!-- made: (\w+)(.*?) -->$", re.MULTILINE)
_ROOMS = re.compile(r"^```rooms\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def with_generated(text: str) -> str:
    """Replace these lines and blocks in a Markdown page by their generated text."""
    text = _ROOMS.sub(lambda block: _html(rooms(block[1])), text)
    return _LINE.sub(lambda line: _MAKERS[line[1]](*line[2].split()), text)


def _cpp(header: str, *left_out: str) -> str:
    listed = cpp_reference(header, *left_out)
    space = "culaunch::ffi" if header.startswith("tvm_ffi") else "culaunch"
    return f"```{{eval-rst}}\n.. cpp:namespace:: {space}\n\n{listed}\n```"


def _html(text: str) -> str:
    return f"```{{raw}} html\n{text}\n```"


_MAKERS = {
    "chart": lambda: _html(launch_chart()),
    "diagram": lambda name: _html(diagram(name)),
    "commands": command_reference,
    "cpp": _cpp,
    "bars": benchmark_numbers.bars,
    "breakdown": benchmark_numbers.breakdown,
    "counters": benchmark_numbers.counters,
    "dispatch": benchmark_numbers.dispatch,
    "from_cpp": benchmark_numbers.from_cpp,
    "further": benchmark_numbers.further,
    "forwards": benchmark_numbers.forwards,
    "first_calls": benchmark_numbers.first_calls,
    "graphs": benchmark_numbers.graphs,
    "headline": benchmark_numbers.headline,
    "kernels": benchmark_numbers.kernels,
    "launch_flags": launch_flags,
    "launch_options": launch_options,
    "launches": benchmark_numbers.launches,
    "machine": benchmark_numbers.machine,
    "planted_bugs": planted_bugs,
    "planted_totals": planted_totals,
    "planted_words": planted_words,
    "reductions": benchmark_numbers.reductions,
    "shortcuts": benchmark_numbers.shortcuts,
}


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect it, as Sphinx asks of an extension."""

    def read(_: Sphinx, __: str, source: list[str]) -> None:
        source[0] = with_generated(source[0])

    app.connect("source-read", read)
    return {"parallel_read_safe": True}
