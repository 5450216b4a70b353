"""One run of Triton's compiler: a kernel for one list of arguments and one architecture."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from typing import TYPE_CHECKING, Any

from culaunch._base.architectures import architecture
from culaunch._base.values import spell
from culaunch._errors import CompileError
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
        If Triton cannot compile it; the log has Triton's message.
    OSError
        If Triton has no room for its files.
    TypeError, ValueError
        If an argument or `arch` cannot be compiled by Triton.
    """
    parameters = list(zip(function.params, arguments, strict=True))
    constants = {
        # Refuse constants that no file can hold before compiling.
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
        # Then the kernel is not at fault.
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
    # Triton always compiles for the architecture with the letter "a". Under a wrong name, a device
    # would load code that it cannot run.
    if made.arch != arch:
        raise ValueError(
            f"Triton compiles for {made.arch} on that device, not for {arch!r}: pass "
            f'arch="{made.arch}"'
        )
    return made


def _no_room(function: Any, error: OSError) -> OSError:
    """Return an error that names Triton's output directory."""
    home = os.environ.get("TRITON_HOME") or os.path.expanduser("~")
    cache = os.environ.get("TRITON_CACHE_DIR") or os.path.join(home, ".triton", "cache")
    why = (
        f"{error.strerror}: to compile {function.__name__}, Triton writes to {cache} (set "
        f"TRITON_CACHE_DIR to change it) and {tempfile.gettempdir()} (TMPDIR)"
    )
    return OSError(error.errno, why, error.filename or cache)


def _target(arch: str) -> Any:
    """Return Triton's description of an architecture."""
    found = architecture(arch) if isinstance(arch, str) else None
    if found is None:
        raise ValueError(
            'arch must be an architecture such as "sm_80", "sm_90a" or "compute_80" '
            f"(got {spell(arch)})"
        )
    return triton_module("backends.compiler").GPUTarget("cuda", found.number, 32)


def backend_of(arch: str) -> Any:
    """Return Triton's compiler for an architecture."""
    return triton_module("compiler.compiler").make_backend(_target(arch))


def _target_of(function: Any, arch: str) -> AbstractContextManager[None]:
    """Answer Gluon's questions to the active driver (in Triton 3.4) if there is no device."""
    if not _is_gluon(function):
        return contextlib.nullcontext()
    capability: int = _target(arch).arch
    return standing_in(StandIn(arch, divmod(capability, 10)))


def _is_gluon(function: Any) -> bool:
    return bool(getattr(function, "is_gluon", lambda: False)())


def _log_of(error: BaseException) -> str:
    """Return the message of a Triton exception and its causes."""
    texts: list[str] = []
    found: BaseException | None = error
    # A chain of causes may be circular.
    while found is not None and len(texts) < 10:
        texts.append(str(found) or repr(found))
        found = found.__cause__ or found.__context__
    return "\n\n".join(dict.fromkeys(texts))


def _source(function: Any, arguments: Sequence[Argument]) -> Any:
    """Make the source object for Triton's compiler."""
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
    """Return a constant in Triton's form: element types become Triton's own."""
    if isinstance(value, SavedType):
        return type_in_language(value.name)
    return value


def _shown_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keep only options that can be written down."""
    kept = {}
    for name, value in options.items():
        try:
            encode(value)
        except (TypeError, ValueError):
            continue
        if value is not None:
            kept[name] = normal_constant(value)
    return kept
