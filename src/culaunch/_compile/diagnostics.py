"""Turn a compiler's log into an exception that shows the place, the source line and the options."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culaunch._base.values import counted
from culaunch._errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# "kernel.cu(3): error: ..." from NVRTC and nvcc, "kernel.cu:3:5: error: ..." from host compilers.
_FRONT_END = re.compile(
    r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?P<what>[a-z ]*error[^\n]*)", re.MULTILINE
)
_HOST = re.compile(
    r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?P<what>[a-z ]*error[^\n]*)", re.MULTILINE
)
_WARNING = re.compile(r"^(?!Remark)[^\n]*\bwarning\b[^\n]*", re.MULTILINE)
_MISSING = re.compile(
    r"(?:could not|cannot) open source file \"(?P<front>[^\"]+)\""
    r"|(?P<host>[^\s:]+): No such file or directory"
)
_NAME_EXPRESSION = re.compile(r"Input name expression was: \" ?(?P<name>[^\"]*?) ?\"")
_NVCC_NAME = re.compile(r"^names: (?P<name>.*)\(\d+\): error", re.MULTILINE)
_MARK = re.compile(r" {2}[ ~^]*")
_ONE_ERROR = re.compile(r"1 error detected in the compilation of ")
_LOG_LIMIT = 8000

_PACKAGES = (
    (re.compile(r"(cub|thrust|cuda|nv)/"), "nvidia-cuda-cccl"),
    (re.compile(r"mma\.h|crt/"), "nvidia-cuda-crt"),
    (re.compile(r"curand"), "nvidia-curand"),
    (re.compile(r"(cublas|cublasLt)"), "nvidia-cublas"),
    (re.compile(r"(cutlass|cute)/"), "nvidia-cutlass"),
    (re.compile(r"(cuda|cooperative_groups|vector_|device_|driver_|host_)"), "nvidia-cuda-runtime"),
)
# Packages with the toolkit's version, which pip can select.
_PINNED = ("nvidia-cuda-crt", "nvidia-cuda-runtime")
_C_HEADER = re.compile(r"(assert|float|limits|math|stddef|stdint|stdio|stdlib|string)\.h")
_CXX_HEADER = re.compile(r"[a-z_]+")
# C headers whose contents NVRTC has built in.
_BUILT_IN = {
    "cassert": "assert is",
    "cmath": "the mathematical functions are",
    "cstdio": "printf is",
    "cstdlib": "malloc, free and abs are",
    "cstring": "memcpy, memset and strlen are",
}


def compile_error(
    log: str,
    *,
    compiler: str,
    flags: Iterable[str],
    sources: Mapping[str, str],
    notes: Iterable[str] = (),
    find: Callable[[str], str | None] = lambda _: None,
) -> CompileError:
    """Make the exception for a failed compilation.

    Parameters
    ----------
    log : str
        The compiler's whole log.
    compiler : str
        Its name and version.
    flags : iterable of str
        The options that it was given.
    sources : Mapping[str, str]
        Text by the name that the log uses, to show the source line.
    notes : iterable of str
        Further facts, such as header directories that were rejected.
    find : callable, optional
        Returns the path of one of CUDA's headers, or None: a hint names only existing files.
    """
    log = log.strip("\0\n ")
    headline, rest = _headline(log, compiler, sources)
    parts = [headline]
    # One hint is enough, and the first match is the most likely one.
    hint = _missing_header_hint(log, compiler, find) or _name_hint(log) or _keyword_hint(log)
    if hint:
        parts.append(hint)
    parts += notes
    options = f"options: {' '.join(flags)}"
    if rest:
        shown = rest if len(rest) <= _LOG_LIMIT else f"{rest[:_LOG_LIMIT]}\n[...]"
        parts += [options, f"{compiler} says:\n{shown}"]
    else:
        parts.append(f"{options} ({compiler}{'' if log else ', which wrote no log'})")
    return CompileError("\n".join(parts), log=log)


def warnings_error(log: str) -> CompileError | None:
    """Return the exception for a log with warnings, or None without warnings."""
    found = _WARNING.findall(log)
    if not found:
        return None
    told = f"{counted(len(found), 'warning')}, and warnings are errors here (warnings_as_errors)"
    return CompileError(f"{found[0]}\n{told}\n{log}", log=log)


def _headline(log: str, compiler: str, sources: Mapping[str, str]) -> tuple[str, str]:
    """Return the first error with its source line, and the rest of the log."""
    match = _FRONT_END.search(log) or _HOST.search(log)
    if match is None:
        # If the log's form is unknown: its first line about an error, then the whole log.
        first = next((line for line in log.splitlines() if "error" in line or "fatal" in line), "")
        return first.strip() or f"{compiler} failed", log
    headline = match[0]
    before, after = log[: match.start()], log[match.end() :].removeprefix("\n").splitlines()
    lines = sources.get(match["file"], "").splitlines()
    number = int(match["line"])
    if 0 < number <= len(lines):
        headline += f"\n  {number:>5} | {lines[number - 1]}"
        # The compiler has already printed this line, with a mark below it.
        if after and after[0] == f"  {lines[number - 1]}":
            del after[0]
            if after and _MARK.fullmatch(after[0]):
                headline += f"\n  {'':>5} | {after.pop(0)[2:]}"
    # Do not repeat the headline.
    after = [line for line in after if not _ONE_ERROR.match(line)]
    return headline, (before + "\n".join(after)).strip("\n ")


def _missing_header_hint(log: str, compiler: str, find: Callable[[str], str | None]) -> str | None:
    match = _MISSING.search(log)
    if match is None:
        return None
    header = match["front"] or match["host"]
    c_header = _C_HEADER.fullmatch(header)
    if c_header or _CXX_HEADER.fullmatch(header):
        ours = f"c{c_header[1]}" if c_header else header
        return (
            f"<{header}> is a header of the host compiler, which NVRTC does not have: "
            f"{_instead(ours, find)}"
        )
    if header.startswith("cuda/std/") and find("nv/target") is not None:
        return (
            f"the installed CCCL has no <{header}>: "
            f"{_instead(header.removeprefix('cuda/std/'), find)}"
        )
    version = compiler.removeprefix("NVRTC ")
    for pattern, package in _PACKAGES:
        if pattern.match(header):
            pinned = package in _PINNED and version != compiler
            wanted = f"'{package}=={version}.*'" if pinned else package
            return (
                f"{header!r} was not found: pip install {wanted}, or name its directory in "
                "include_dirs="
            )
    return f"{header!r} was not found: pass its text in headers=, or its directory in include_dirs="


def _instead(header: str, find: Callable[[str], str | None]) -> str:
    """Return the advice for a missing header of the host's C++ library."""
    built_in = _BUILT_IN.get(header)
    remove = "" if built_in is None else f"remove it ({built_in} built in), or "
    if find("nv/target") is None:
        return f"{remove}include <cuda/std/{header}> if CCCL has it, or compile with backend='nvcc'"
    if find(f"cuda/std/{header}") is not None:
        return f"{remove}include <cuda/std/{header}>, or compile with backend='nvcc'"
    if remove:
        return f"{remove}compile with backend='nvcc'"
    return (
        "device code has no equivalent: leave it out (#ifndef __CUDACC_RTC__), or compile "
        "with backend='nvcc'"
    )


def _keyword_hint(log: str) -> str | None:
    if "Consider using -default-device" not in log:
        return None
    return (
        "mark it __device__; or pass device_as_default_execution_space=True, which is "
        "what the compiler calls -default-device"
    )


def _name_hint(log: str) -> str | None:
    match = _NAME_EXPRESSION.search(log) or _NVCC_NAME.search(log)
    if match is None:
        return None
    name = re.sub(r"\s*([<>,:()*&])\s*", r"\1", match["name"])
    return (
        f"names has {name!r}, which names no kernel of the source: write it as the source would, "
        "qualified and with every template argument"
    )
