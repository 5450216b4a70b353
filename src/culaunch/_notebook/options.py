"""The words after ``%%cu`` and ``%%culaunch_profile``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from keyword import iskeyword


@dataclass
class CompileOptions:
    """The options of ``%%cu``."""

    names: list[str] = field(default_factory=list)
    arch: str | None = None
    options: list[str] = field(default_factory=list)
    module: str | None = None


def compile_options(line: str) -> CompileOptions:
    """Read the line of ``%%cu``.

    Raise ValueError if a word is not an option, or lacks its value.
    """
    found = CompileOptions()
    words = iter(_split(line))
    for word in words:
        if not word.startswith("-"):
            found.names.append(word)
            continue
        option, equals, value = word.partition("=")
        if option not in ("--arch", "--option", "--module"):
            raise ValueError(
                f"%%cu has no option {option!r}: it has --arch, --option and --module, and "
                "compiler options go after --option"
            )
        value = value if equals else next(words, "")
        if not value:
            raise ValueError(f"{option} of %%cu needs a value")
        if option == "--arch":
            found.arch = value
        elif option == "--option":
            found.options.append(value)
        else:
            found.module = variable("--module of %%cu", value)
    return found


def profile_name(line: str) -> str | None:
    """Read the line of ``%%culaunch_profile``: a variable, or nothing.

    Raise ValueError if it is something else.
    """
    words = _split(line)
    if len(words) > 1:
        raise ValueError(f"%%culaunch_profile takes one variable (got {line.strip()!r})")
    return variable("the variable of %%culaunch_profile", words[0]) if words else None


def variable(what: str, name: str) -> str:
    """Return a name that a variable may have; raise ValueError if no variable can have it."""
    if not name.isidentifier() or iskeyword(name):
        raise ValueError(f"{what} must be a name of a Python variable (got {name!r})")
    return name


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise ValueError(f"cannot read {line.strip()!r}: {error}") from None
