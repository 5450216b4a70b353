"""Make the tables of planted bugs from docs/benchmarks/planted_bugs.json."""

from __future__ import annotations

from typing import Any

from benchmark_numbers import read, table

TOOLS = ("GPU", "memcheck", "racecheck", "initcheck", "synccheck")


def planted_totals(name: str) -> str:
    """Return how many bugs of each source the emulator and the tools find."""
    bugs = read(name)
    tools = _tools(bugs)
    sources = list(dict.fromkeys(row["source"] for row in bugs.values()))
    lines = []
    for source in [*sources, "all"]:
        rows = [row for row in bugs.values() if source in (row["source"], "all")]
        found = [str(len(rows)), str(sum(_emulated(row) != "" for row in rows))]
        found.append(str(sum(row["emulator"]["default"] is not None for row in rows)))
        found += [str(sum(_tool(row, tool) != "" for row in rows)) for tool in tools]
        lines.append([source.replace("_", " "), *found])
    head = ["bugs in", "bugs", "emulator", "emulator without options", *_heads(tools)]
    return table(head, lines)


def planted_bugs(name: str) -> str:
    """Return what finds each bug: "line" at its line, "found" at another place."""
    bugs = read(name)
    tools = _tools(bugs)
    lines = [
        [f"`{bug}`", row["kind"], _emulated(row) or row["missed"], *(_tool(row, t) for t in tools)]
        for bug, row in bugs.items()
    ]
    return table(["bug", "kind", "emulator", *_heads(tools)], lines, 0)


def planted_words(name: str) -> str:
    """Return the first line of each report of a bug."""
    bugs = read(name)
    lines = []
    for bug, row in bugs.items():
        words = [("emulator", (row["emulator"]["checked"] or {}).get("words", ""))]
        words += [(tool, row["sanitizer"][tool]["words"]) for tool in _tools(bugs)]
        lines += [[f"`{bug}`", finder, _escaped(text)] for finder, text in words if text]
    return table(["bug", "reported by", "words"], lines, 0)


def _emulated(row: dict[str, Any]) -> str:
    report = row["emulator"]["checked"]
    if report is None:
        return ""
    if row["profiled"]:
        return "found by `profile`"
    place = report["place"]
    text = "line" if row["place"] in (place, place.partition(":")[0]) else "found"
    return text if row["emulator"]["default"] is not None else f"{text}, with an option"


def _tool(row: dict[str, Any], tool: str) -> str:
    report = row["sanitizer"][tool]
    # A process that was stopped, or failed on its own, reported nothing.
    if not report["words"] or report["words"].startswith(("no end within", "failed: ")):
        return ""
    return "line" if report["is_right"] else "found"


def _tools(bugs: dict[str, Any]) -> tuple[str, ...]:
    # Without a run on a GPU, the tables have the emulator's columns.
    return TOOLS if all("sanitizer" in row for row in bugs.values()) else ()


def _heads(tools: tuple[str, ...]) -> list[str]:
    return ["GPU alone" if tool == "GPU" else tool for tool in tools]


def _escaped(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"
