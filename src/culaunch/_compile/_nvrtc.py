"""The NVRTC backend: one source, one architecture, one program."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from culaunch._compile._arch import check_supported
from culaunch._compile._diagnostics import compile_error
from culaunch._errors import CompileError, InternalError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PIP = "pip install 'culaunch[compile]'"


@dataclass(frozen=True)
class Compiled:
    """What a backend made for one architecture."""

    arch: str
    kind: str
    """``"cubin"``, ``"ptx"`` or ``"ltoir"``."""
    data: bytes
    ptx: bytes = b""
    names: Mapping[str, str] = field(default_factory=dict)
    log: str = ""


def compile_nvrtc(
    text: str,
    name: str,
    *,
    arch: str,
    flags: Sequence[str],
    names: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    lto: bool = False,
    notes: Sequence[str] = (),
) -> Compiled:
    """Compile for one architecture; the interpreter is free to run other threads meanwhile."""
    api = nvrtc()
    check_supported([arch], supported_archs(), f"NVRTC {version()}")
    headers = headers or {}
    program = _check(
        api.nvrtcCreateProgram(
            text.encode(),
            name.encode(),
            len(headers),
            [content.encode() for content in headers.values()],
            [path.encode() for path in headers],
        )
    )
    options = [f"--gpu-architecture={arch}", *flags]
    try:
        for expression in names:
            _check(api.nvrtcAddNameExpression(program, expression.encode()))
        (status,) = api.nvrtcCompileProgram(
            program, len(options), [option.encode() for option in options]
        )
        log = _get(api, "ProgramLog", program).rstrip(b"\0\n ").decode(errors="replace")
        if int(status) != 0:
            raise compile_error(
                log or status.name,
                compiler=f"NVRTC {version()}",
                flags=options,
                sources={**headers, name: text},
                notes=notes,
            )
        lowered = {expression: _lowered(api, program, expression) for expression in names}
        if lto:
            return Compiled(arch, "ltoir", _get(api, "LTOIR", program), names=lowered, log=log)
        ptx = _get(api, "PTX", program).rstrip(b"\0")
        if arch.startswith("compute_"):
            return Compiled(arch, "ptx", ptx, ptx, lowered, log)
        return Compiled(arch, "cubin", _get(api, "CUBIN", program), ptx, lowered, log)
    finally:
        api.nvrtcDestroyProgram(program)


@functools.cache
def nvrtc() -> Any:
    """Import the bindings and load the library."""
    try:
        from cuda.bindings import nvrtc as api  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingDependencyError(
            f"compiling needs cuda-bindings and NVRTC, which are not installed: {PIP}"
        ) from error
    try:
        api.nvrtcVersion()
    except Exception as error:  # pathfinder raises several kinds of its own
        raise MissingDependencyError(f"NVRTC cannot be loaded: {error}; {PIP}") from error
    return api


@functools.cache
def version() -> str:
    """Give NVRTC's own version, ``"13.5"``."""
    major, minor = _check(nvrtc().nvrtcVersion())
    return f"{major}.{minor}"


@functools.cache
def supported_archs() -> tuple[int, ...]:
    """Give the numbers of the architectures that NVRTC knows."""
    return tuple(_check(nvrtc().nvrtcGetSupportedArchs()))


def _lowered(api: Any, program: Any, expression: str) -> str:
    status, *rest = api.nvrtcGetLoweredName(program, expression.encode())
    if int(status) != 0:
        raise CompileError(f"names has {expression!r}, for which NVRTC gives no lowered name")
    name: bytes = rest[0]
    return name.decode()


def _get(api: Any, what: str, program: Any) -> bytes:
    size = _check(getattr(api, f"nvrtcGet{what}Size")(program))
    buffer = bytes(size)
    if size:
        _check(getattr(api, f"nvrtcGet{what}")(program, buffer))
    return buffer


def _check(result: Any) -> Any:
    """Unpack (status, *values), the shape of every call of the bindings."""
    status, *values = result
    if int(status) != 0:
        raise InternalError(f"NVRTC failed with {status.name}")
    if len(values) == 1:
        return values[0]
    return values
