"""The options of a launch: their table, and their flags in programs."""

from __future__ import annotations

import inspect

from culaunch._launch.launches.launch_options import KINDS, OPTIONS


def launch_options() -> str:
    """Return it as Markdown, from the record."""
    rows = ["| option | type | default | |", "|---|---|---|---|"]
    for option in OPTIONS.values():
        is_required = option.default is inspect.Parameter.empty
        default = "required" if is_required else f"`{option.default}`"
        type_ = KINDS[option.kind].type.removesuffix(", optional")
        rows.append(f"| `{option.name}` | {type_} | {default} | {option.text.replace('``', '`')} |")
    return "\n".join(rows)


def launch_flags() -> str:
    """Return the flags of recorded launches, in their order."""
    flags = {option.flag: name for name, option in OPTIONS.items() if option.flag}
    return ", ".join(f"{flag} {flags[flag]}" for flag in sorted(flags)) + "."
