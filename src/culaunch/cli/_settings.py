"""Constants and options as the command line has them: ``BLOCK=64``, ``DT=tl.float16``."""

from __future__ import annotations

import ast
import collections
import importlib
import re
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NAMED = re.compile(r"\(\s*\w+\s*=[^=]")  # how a named tuple begins
_OWN = ("signature", "arch", "constants", "configs", "keep_ptx", "grid")


def split_settings(text: str) -> list[str]:
    """Split ``NAME=VALUE,NAME=VALUE`` at its commas; those of tuples and of quoted text stay."""
    parts, start, depth = [], 0, 0
    for i, letter in _unquoted(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    if depth:
        raise click.UsageError(f"unbalanced brackets in {text!r}")
    return [*parts, text[start:]]


def read_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Read NAME=VALUE of each text; a name that is given twice would lose a value."""
    found: dict[str, Any] = {}
    for name, value in map(_setting, texts):
        if name in found:
            raise click.UsageError(f"{name} is given twice")
        found[name] = value
    return found


def read_options(texts: Iterable[str], own: dict[str, Any]) -> dict[str, Any]:
    """Combine the values of ``--option`` with the options that the command has itself."""
    found = read_settings(texts)
    for name in found:
        if name in own or name in _OWN:
            raise click.UsageError(
                f"{name} cannot be given with --option: the command has an option of that name"
            )
    return {**found, **own}


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise click.UsageError(f"a setting must be NAME=VALUE (got {text!r})")
    return name.strip(), _value(value.strip())


def _value(text: str) -> Any:
    """Read a value. If it is not a number or another literal, it is text."""
    try:
        return _evaluate(ast.parse(_as_calls(text), mode="eval").body)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        # The user meant a tuple, and a text would go unnoticed.
        if text.startswith("("):
            raise click.UsageError(
                f"{text!r:.100} is not a tuple: write (1, 2) or (a=1, b=(2, 3)), and text in quotes"
            ) from None
        return text


def _as_calls(text: str) -> str:
    """Write named tuples, at any depth, as calls, whose arguments have names."""
    starts = {i for i, letter in _unquoted(text) if letter == "(" and _NAMED.match(text, i)}
    return "".join(f"_{letter}" if i in starts else letter for i, letter in enumerate(text))


def _unquoted(text: str) -> Iterator[tuple[int, str]]:
    """Give the letters outside of quotes; a quote begins where a value may."""
    quote = before = ""
    for i, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"" and before in ("", *"=([{,"):
            quote = letter
        else:
            yield i, letter
        before = before if letter.isspace() else letter


def _evaluate(node: ast.expr) -> Any:
    if isinstance(node, ast.Attribute):
        return _element_type(ast.unparse(node))
    if isinstance(node, ast.Tuple):
        return tuple(_evaluate(item) for item in node.elts)
    if isinstance(node, ast.Call):
        names = " ".join(str(one.arg) for one in node.keywords)
        if node.args or not isinstance(node.func, ast.Name) or node.func.id != "_":
            raise ValueError
        kind = collections.namedtuple("named", names)  # type: ignore[misc]
        return kind(*(_evaluate(one.value) for one in node.keywords))
    return ast.literal_eval(node)


def _element_type(text: str) -> Any:
    """Return an element type of Triton: ``tl.float16``."""
    place, _, name = text.rpartition(".")
    if place not in ("tl", "triton.language"):
        raise ValueError
    try:
        tl = importlib.import_module("triton.language")
    except ImportError:
        raise ValueError from None  # compile() reports missing settings
    found = getattr(tl, name, None)
    if not isinstance(found, tl.dtype):
        raise click.UsageError(f"{text} is not an element type of Triton")
    return found
