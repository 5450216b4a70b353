"""Tables for notebooks."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def html_table(
    titles: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "", note: str = ""
) -> str:
    """Return a table in HTML, with numbers on the right.

    Parameters
    ----------
    titles : sequence of str
    rows : iterable of sequences
        The cells, one for each title; None is an empty cell.
    caption : str, optional
        The line above it.
    note : str, optional
        Lines below it.
    """
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    parts = [
        f"<caption>{html.escape(caption)}</caption>" if caption else "",
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>",
    ]
    below = f"<pre>{html.escape(note)}</pre>" if note else ""
    return f"<table>{''.join(parts)}</table>{below}"


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
    # Notebooks center or right-align by their own style sheets: text is read from its left end.
    align = "right" if isinstance(value, (int, float)) else "left"
    return f'<td style="text-align:{align}">{html.escape(text)}</td>'
