"""The exceptions of a compiler's log. ``include/culaunch/jit/diagnostics.h`` writes the message."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culaunch._base.values import counted
from culaunch._core import explain_failure
from culaunch._errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_WARNING = re.compile(r"^(?!Remark)[^\n]*\bwarning\b[^\n]*", re.MULTILINE)


def compile_error(
    log: str,
    *,
    compiler: str,
    flags: Sequence[str],
    sources: Mapping[str, str],
    notes: Sequence[str] = (),
    find: Callable[[str], str | None] = lambda _: None,
) -> CompileError:
    """Make the exception for a failed compilation.

    Parameters
    ----------
    log : str
        The compiler's whole log.
    compiler : str
        Its name and version.
    flags : sequence of str
        The options that it was given.
    sources : Mapping[str, str]
        Text by the name that the log uses, to show the source line.
    notes : sequence of str
        Further facts, such as header directories that were rejected.
    find : callable, optional
        Returns the path of one of CUDA's headers, or None: a hint names only existing files.
    """
    log = log.strip("\0\n ")
    text = explain_failure(log, compiler, flags, dict(sources), notes, find)
    return CompileError(text, log=log)


def warnings_error(log: str) -> CompileError | None:
    """Return the exception for a log with warnings, or None without warnings."""
    found = _WARNING.findall(log)
    if not found:
        return None
    told = f"{counted(len(found), 'warning')}, and warnings are errors here (warnings_as_errors)"
    return CompileError(f"{found[0]}\n{told}\n{log}", log=log)
