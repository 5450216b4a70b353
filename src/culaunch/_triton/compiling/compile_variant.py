"""One run of Triton's compiler: a kernel for one list of arguments and one architecture."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._errors import CompileError
from culaunch._image.architectures import ARCH
from culaunch._triton.calls.object_kinds import type_in_language
from culaunch._triton.compiling.make_variant import make_variant
from culaunch._triton.upstream.compiler_digest import known_compiler
from culaunch._triton.upstream.target import StandIn, standing_in, triton_module
from culaunch._triton.upstream.warned import warnings_named
from culaunch._triton.variants.constants import SavedType, encode, normal_constant
from culaunch._triton.variants.launch_facts import LaunchFacts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from culaunch._triton.compiling.signature import Argument
    from culaunch._triton.saved.variant import SavedVariant

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


def compile_variant(
    function: Any,
    arguments: Sequence[Argument],
    arch: str,
    options: dict[str, Any],
    keep_ptx: bool,
    members: dict[str, bytes],
) -> SavedVariant:
    """Compile a kernel for one list of arguments and one architecture; images join `members`.

    Raises
    ------
    CompileError
        If Triton cannot compile it; the log has what Triton said.
    OSError
        If Triton has no room for its files.
    TypeError, ValueError
        If an argument or `arch` is nothing that Triton can compile for.
    """
    parameters = list(zip(function.params, arguments, strict=True))
    constants = {
        # Before anything is compiled: a constant that no file can hold is refused.
        one.name: normal_constant(argument.value)
        for one, argument in parameters
        if one.is_constexpr
    }
    source = _source(function, arguments)
    try:
        with warnings_named(function.__name__), known_compiler(), _target_of(function, arch):
            compiled = triton_module().compile(source, target=_target(arch), options=dict(options))
    except TypeError as error:
        raise TypeError(f"{function.__name__}: {error}") from error
    except Warning:
        raise
    except Exception as error:
        # It is not the kernel that is wrong then.
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            raise _no_room(function, error) from error
        raise CompileError(
            f"Triton cannot compile {function.__name__} for {arch}: {error}", log=_log_of(error)
        ) from error
    only_ptx = arch.startswith("compute")
    made = make_variant(
        compiled.asm["cubin"],
        compiled.asm["ptx"] if keep_ptx or only_ptx else None,
        LaunchFacts.from_metadata(compiled.metadata),
        [argument for one, argument in parameters if not one.is_constexpr],
        constants,
        _shown_options(options),
        members,
        only_ptx=only_ptx,
    )
    # Triton makes code of the architecture with the letter "a" whatever was asked for: under the
    # wrong name a device would take it that cannot run it.
    if made.arch != arch:
        raise ValueError(
            f"Triton compiles for {made.arch} on that device, not for {arch!r}: pass "
            f'arch="{made.arch}"'
        )
    return made


def _no_room(function: Any, error: OSError) -> OSError:
    """Return an error that says where Triton writes."""
    home = os.environ.get("TRITON_HOME") or os.path.expanduser("~")
    cache = os.environ.get("TRITON_CACHE_DIR") or os.path.join(home, ".triton", "cache")
    why = (
        f"{error.strerror}: Triton compiles {function.__name__}, and writes to {cache} "
        f"(TRITON_CACHE_DIR names another place) and {tempfile.gettempdir()} (TMPDIR)"
    )
    return OSError(error.errno, why, error.filename or cache)


def _target(arch: str) -> Any:
    """Return what Triton calls an architecture."""
    match = ARCH.fullmatch(arch) if isinstance(arch, str) else None
    if match is None:
        raise ValueError(
            f'arch must be such as "sm_80", "sm_90a" or "compute_80" (got {spell(arch)})'
        )
    capability = 10 * int(match[2]) + int(match[3])
    return triton_module("backends.compiler").GPUTarget("cuda", capability, 32)


def backend_of(arch: str) -> Any:
    """Return Triton's compiler for an architecture."""
    return triton_module("compiler.compiler").make_backend(_target(arch))


def _target_of(function: Any, arch: str) -> AbstractContextManager[None]:
    """Answer, where there is no device, what Gluon in Triton 3.4 asks the active driver."""
    if not _is_gluon(function):
        return contextlib.nullcontext()
    capability: int = _target(arch).arch
    return standing_in(StandIn(arch, divmod(capability, 10)))


def _is_gluon(function: Any) -> bool:
    return bool(getattr(function, "is_gluon", lambda: False)())


def _log_of(error: BaseException) -> str:
    """Return what an exception of Triton says, and those that it came from."""
    texts: list[str] = []
    found: BaseException | None = error
    # A chain of causes may be a circle.
    while found is not None and len(texts) < 10:
        texts.append(str(found) or repr(found))
        found = found.__cause__ or found.__context__
    return "\n\n".join(dict.fromkeys(texts))


def _source(function: Any, arguments: Sequence[Argument]) -> Any:
    """Make what Triton's compiler takes."""
    names = [one.name for one in function.params]
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    for i, argument in enumerate(arguments):
        _collect((i,), argument.type, argument.key, argument.value, constants, attributes)
    signature = {name: one.type for name, one in zip(names, arguments, strict=True)}
    source_type = triton_module("compiler").ASTSource
    if _is_gluon(function):
        source_type = triton_module("experimental.gluon._runtime").GluonASTSource
    return source_type(function, signature, constants, attributes)


def _collect(
    path: tuple[int, ...],
    kind: Any,
    key: Any,
    value: Any,
    constants: dict[tuple[int, ...], Any],
    attributes: dict[tuple[int, ...], list[list[Any]]],
) -> None:
    if isinstance(kind, tuple):
        values = value if isinstance(value, tuple) else (None,) * len(kind)
        for i, item in enumerate(kind):
            _collect((*path, i), item, key[i], values[i], constants, attributes)
    elif kind == "constexpr":
        constants[path] = _for_triton(value)
    elif key == "D":
        attributes[path] = [["tt.divisibility", 16]]


def _for_triton(value: Any) -> Any:
    """Return a constant as Triton has it: an element type that an expression gave is its own."""
    if isinstance(value, SavedType):
        return type_in_language(value.name)
    return value


def _shown_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the options that can be written down."""
    kept = {}
    for name, value in options.items():
        try:
            encode(value)
        except (TypeError, ValueError):
            continue
        if value is not None:
            kept[name] = normal_constant(value)
    return kept
