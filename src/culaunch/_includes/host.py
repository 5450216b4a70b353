"""The header directories of a host compiler, as the compiler prints them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Variables that host compilers, and nvcc before them, read besides their options and their input.
ENVIRONMENT = (
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
    "LIBRARY_PATH",
    "SDKROOT",
    "SOURCE_DATE_EPOCH",
    "CCC_OVERRIDE_OPTIONS",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "CUDAFE_FLAGS",
    "PTXAS_FLAGS",
    "CICC_PATH",
    "NVVMIR_LIBRARY_DIR",
)
# Which of them name directories of headers of the user's.
_DIRECTORIES = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")
# Options that do not concern header directories, with their arguments.
_WITH_VALUE = frozenset({"-o", "-MF", "-MT", "-MQ", "-x"})
_WITH_DIRECTORY = frozenset(
    {"-I", "-isystem", "-iquote", "-idirafter", "-isysroot", "--sysroot", "-B", "-specs"}
    | {"-iprefix", "-iwithprefix", "-iwithprefixbefore"}
)
_FORCED = frozenset({"-include", "-imacros"})
_NOT_THERE = re.compile(r'^ignoring nonexistent directory "(.*)"$', re.MULTILINE)
_LISTS = re.compile(
    r'^#include "\.\.\." search starts here:\n(.*?)^#include <\.\.\.> search starts here:\n'
    r"(.*?)^End of search list",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class HostSearch:
    """The directories of a host compiler, in order."""

    quoted_dirs: tuple[str, ...] = ()
    dirs: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()
    """Which of `dirs` it looks through without being told."""
    not_there: tuple[str, ...] = ()
    """Directories that it would look through if they were there."""
    forced: tuple[str, ...] = ()
    """The files that it includes before the first line, as ``"name`` or ``<name``."""
    defines: str = ""
    """Lines that define the macros of its options."""

    def is_current(self) -> bool:
        """Tell whether a directory that was not there still is not."""
        return not any(os.path.isdir(path) for path in self.not_there)


def environment() -> tuple[str, ...]:
    """Return the environment variables that the compilers read."""
    return tuple(f"{name}={os.environ[name]}" for name in ENVIRONMENT if name in os.environ)


def ask_host(command: Sequence[str], working: str) -> HostSearch:
    """Ask a host compiler for its search directories.

    Parameters
    ----------
    command : sequence of str
        The compiler, with the options that it is called with, and no file.
    working : str
        The directory that it is called in.
    """
    # Options that define or include say nothing of directories, and a missing forced include would
    # be an error here.
    words, forced, defines = _sorted_words(command)
    said = _ask(words, working, dict(os.environ))
    lists = _LISTS.search(said)
    if lists is None:
        raise OSError(f"{command[0]} did not print its header directories: {said.strip()}")
    quoted, dirs = (_directories(text, working) for text in lists.groups())
    # Without the user's variables, to learn which directories are the compiler's own: those are
    # known by its version, and not looked through.
    bare = {name: value for name, value in os.environ.items() if name not in _DIRECTORIES}
    own = _LISTS.search(_ask(words[:1], working, bare))
    return HostSearch(
        quoted,
        dirs,
        frozenset(_directories(own[2], working)) if own is not None else frozenset(),
        tuple(os.path.join(working, path) for path in _NOT_THERE.findall(said)),
        # Every compilation on Linux begins with it, wherever it is found.
        ("<stdc-predef.h", *forced),
        defines,
    )


def ask_nvcc(command: Sequence[str], working: str) -> tuple[HostSearch, str]:
    """Ask nvcc which host compiler it calls and how; return where that looks, and its identity.

    Parameters
    ----------
    command : sequence of str
        nvcc, with the options that it is called with, and no file.
    working : str
        The directory that it is called in.
    """
    # An existing file for nvcc, which does not read it.
    shown = _output([*command, "--dryrun", "-x", "cu", os.devnull], working, dict(os.environ))
    lines = [line[3:] for line in shown.splitlines() if line.startswith("#$ ")]
    # nvcc preprocesses once for the host and once for each architecture, and each call may name
    # other directories.
    calls = [shlex.split(line) for line in lines if re.search(r"\s-E\s", line)]
    found = [ask_host(call, working) for call in calls]
    if not found:
        raise OSError(f"nvcc did not print how it calls the host compiler: {shown.strip()}")
    named = [line for line in lines if line.startswith(("INCLUDES=", "SYSTEM_INCLUDES="))]
    # They are quoted, alone or with the option before them.
    theirs = {
        os.path.normpath(word.removeprefix("-I").removeprefix("-isystem"))
        for line in named
        for word in shlex.split(line.partition("=")[2])
        if word != "-isystem"
    }
    joined = HostSearch(
        _unique(path for one in found for path in one.quoted_dirs),
        _unique(path for one in found for path in one.dirs),
        frozenset().union(*(one.own for one in found))
        | {path for one in found for path in one.dirs if os.path.normpath(path) in theirs},
        _unique(path for one in found for path in one.not_there),
        _unique(name for one in found for name in one.forced),
        "".join(_unique(one.defines for one in found)),
    )
    versions = (
        _output([host, "--version"], working, dict(os.environ))
        for host in _unique(call[0] for call in calls)
    )
    return joined, "\n".join(versions)


def named_dirs(command: Sequence[str], working: str) -> tuple[str, ...]:
    """Return the directories that a command names itself, in the order of its words."""
    words = iter(command)
    found = [
        os.path.join(working, word[len(flag) :] or next(words, ""))
        for word in words
        for flag in ("-I", "-isystem", "-iquote", "-idirafter")
        if word.startswith(flag)
    ]
    return _unique(found)


def _sorted_words(command: Sequence[str]) -> tuple[list[str], list[str], str]:
    """Tell the options that say where headers are from those that include and define."""
    words: list[str] = []
    forced: list[str] = []
    defines: list[str] = []
    left = iter(command)
    for word in left:
        if word in _FORCED:
            forced.append(f'"{next(left, "")}')
        elif word.startswith("-D"):
            macro = word[2:] or next(left, "")
            name, equals, value = macro.partition("=")
            defines.append(f"#define {name} {value if equals else 1}\n")
        elif word in _WITH_VALUE:
            next(left, "")
        elif not words or word.startswith(("-", "@")) or words[-1] in _WITH_DIRECTORY:
            words.append(word)
    return (
        [word for word in words if word not in ("-E", "-c", "-MD", "-MMD")],
        forced,
        "".join(defines),
    )


def _ask(words: Sequence[str], working: str, variables: dict[str, str]) -> str:
    return _output([*words, "-E", "-v", "-x", "c++", os.devnull], working, variables)


def _output(command: Sequence[str], working: str, variables: dict[str, str]) -> str:
    result = subprocess.run(  # noqa: S603
        command,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        cwd=working,
        # The answers are read as text, which is translated in other locales.
        env={**variables, "LC_ALL": "C"},
    )
    return result.stderr + result.stdout


def _directories(text: str, working: str) -> tuple[str, ...]:
    return tuple(os.path.join(working, line.strip()) for line in text.splitlines())


def _unique(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
