"""Compile a Triton kernel ahead of time, for any architecture, with no GPU."""

from __future__ import annotations

import hashlib
import itertools
import re
from typing import TYPE_CHECKING, Any

from culaunch._errors import CompileError
from culaunch._image import Image
from culaunch._triton._facts import LaunchFacts
from culaunch._triton._layout import make_sources
from culaunch._triton._native import NativeKernel
from culaunch._triton._objects import type_name
from culaunch._triton._parameters import parameters_of
from culaunch._triton._saved import SavedVariant, encode
from culaunch._triton._set import KernelSet
from culaunch._triton._signature import Argument, make_constant, parse_signature
from culaunch._triton._target import triton_module
from culaunch._triton._tuned import TunedEntry, TunedTable
from culaunch._triton._tuning import split_config

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_ARCH = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")


def compile(  # noqa: A001
    kernel: Any,
    signature: str | Sequence[str],
    *,
    arch: str | Sequence[str],
    constants: Mapping[str, Any] | None = None,
    configs: Sequence[Mapping[str, Any]] | None = None,
    keep_ptx: bool = False,
    **options: Any,
) -> KernelSet:
    """Compile a kernel for several signatures, configurations and architectures. No GPU is needed.

    Parameters
    ----------
    kernel : triton.runtime.JITFunction or Autotuner
        What ``@triton.jit`` makes. With ``@triton.autotune`` above it, its configurations are
        compiled: those that it chose, with the table of its choices, if it has tuned already; else
        all of them.
    signature : str or sequence of str
        One entry for each argument that is no constant, as in
        ``"*fp32:16, *fp32:16, i32, i32:1"``: ``:16`` promises divisibility by 16, ``:1`` folds an
        int that is always 1. Constants may stand in their places too.
    arch : str or sequence of str
        ``"sm_80"``, ``"sm_90a"``, ...; ``"compute_80"`` keeps PTX alone, which newer devices take.
    constants : mapping, optional
        Values of the kernel's constants by name.
    configs : sequence of mapping, optional
        Each sets constants and options of its own, over those of the call.
    keep_ptx : bool, optional
        Keep the PTX beside each cubin: the emulator runs it.
    **options
        Triton's compile options: ``num_warps``, ``num_stages``, ``num_ctas``, ...

    Returns
    -------
    KernelSet

    Raises
    ------
    ValueError, TypeError
        If the signature, a constant or an option does not go with the kernel.
    CompileError
        If Triton cannot compile it.
    MissingDependencyError
        If Triton is not installed.
    """
    function, tuner = _unwrap(kernel)
    table = None
    if tuner is not None and configs is None:
        configs, table = _tuned_configs(tuner)
    signatures = [signature] if isinstance(signature, str) else list(signature)
    arches = [arch] if isinstance(arch, str) else list(arch)
    if not signatures or not arches or (configs is not None and not configs):
        raise ValueError("signature, arch and configs must not be empty")
    names = set(function.arg_names)
    members: dict[str, bytes] = {}
    variants = []
    for text, config, target in itertools.product(signatures, configs or ({},), arches):
        settings = {**(constants or {}), **options, **config}
        fixed = {name: value for name, value in settings.items() if name in names}
        extra = {name: value for name, value in settings.items() if name not in names}
        unknown = set(constants or ()) - names
        if unknown:
            raise ValueError(f"{function.__name__} has no parameter {', '.join(sorted(unknown))}")
        arguments = _arguments(function, text, fixed)
        variants.append(_compile_one(function, arguments, target, extra, keep_ptx, members))
    parameters = parameters_of(function, frozenset())
    return KernelSet(function.__name__, parameters, variants, members.__getitem__, table)


def _unwrap(kernel: Any) -> tuple[Any, Any]:
    """Give the JIT function, and the autotuner above it."""
    function_type = triton_module("runtime.jit").JITFunction
    tuner = None
    while not isinstance(kernel, function_type):
        if type(kernel).__name__ == "InterpretedFunction":
            raise TypeError("TRITON_INTERPRET is set: unset it to compile")
        if type(kernel).__name__ == "Autotuner":
            tuner = kernel
        if isinstance(kernel, NativeKernel):
            tuner = kernel._tuner  # noqa: SLF001
        inner = getattr(kernel, "fn", None)
        if inner is None:
            raise TypeError(
                "compile() takes what @triton.jit makes "
                f"(got {type(kernel).__module__}.{type(kernel).__qualname__})"
            )
        kernel = inner
    return kernel, tuner


def _tuned_configs(tuner: Any) -> tuple[list[dict[str, Any]], TunedTable | None]:
    """Give the configurations to compile, and the table of those that were chosen."""
    if not tuner.cache or len(tuner.configs) < 2:
        return [dict(config.all_kwargs()) for config in tuner.configs], None
    names = tuple(name for name in tuner.keys if name in tuner.arg_names)
    chosen: list[dict[str, Any]] = []
    entries = []
    for key, config in tuner.cache.items():
        settings = dict(config.all_kwargs())
        if settings not in chosen:
            chosen.append(settings)
        constants, options = split_config(config, tuner.arg_names)
        dtypes = tuple(type_name(dtype) for dtype in key[len(names) :])
        entries.append(TunedEntry(tuple(key[: len(names)]), dtypes, constants, options))
    return chosen, TunedTable(names, tuple(entries))


def _arguments(function: Any, text: str, fixed: Mapping[str, Any]) -> list[Argument]:
    """Give every parameter its argument."""
    given = parse_signature(text)
    open_names = [one.name for one in function.params if one.name not in fixed]
    required = [
        one.name
        for one in function.params
        if one.name not in fixed and not (one.is_constexpr and one.has_default)
    ]
    if len(given) == len(function.params) != len(open_names):
        names = [one.name for one in function.params]  # constants stand in their places
    else:
        names = open_names if len(given) == len(open_names) else required
    if len(given) != len(names):
        raise ValueError(
            f"{function.__name__} needs a signature of {len(names)} entries, for "
            f"{', '.join(names)} (got {len(given)} in {text!r}). Constants are given by "
            "constants={...}"
        )
    by_name = dict(zip(names, given, strict=True))
    arguments = []
    for one in function.params:
        argument = by_name.get(one.name)
        if one.name in fixed:
            if argument is not None and argument.value != fixed[one.name]:
                raise ValueError(f"{one.name} is given twice, as different constants")
            argument = make_constant(fixed[one.name])
        elif argument is None:
            argument = make_constant(one.default)
        if one.is_constexpr and not argument.is_constant:
            raise ValueError(
                f"{one.name} of {function.__name__} is a constexpr: give its value, in the "
                f'signature or with constants={{"{one.name}": ...}}'
            )
        if not one.is_constexpr and argument.is_constant and argument.key is None:
            argument = _folded(one.name, argument)
        arguments.append(argument)
    return arguments


def _folded(name: str, argument: Argument) -> Argument:
    """Take a constant for a run-time parameter: Triton folds None and 1 alone."""
    if argument.value is None:
        return argument
    if argument.value == 1 and type(argument.value) is int:
        return Argument("constexpr", 1, 1)
    raise ValueError(
        f"{name} is no constexpr: only 1 and None are folded (got {argument.value!r:.60}); give a "
        "type, with :16 if it is always divisible by 16"
    )


def _compile_one(
    function: Any,
    arguments: Sequence[Argument],
    arch: str,
    options: dict[str, Any],
    keep_ptx: bool,
    members: dict[str, bytes],
) -> SavedVariant:
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise ValueError(f'arch must be such as "sm_80", "sm_90a" or "compute_80" (got {arch!r})')
    capability = 10 * int(match[2]) + int(match[3])
    target = triton_module("backends.compiler").GPUTarget("cuda", capability, 32)
    source = make_source(function, arguments)
    try:
        compiled = triton_module().compile(source, target=target, options=dict(options))
    except TypeError as error:
        raise TypeError(f"{function.__name__}: {error}") from error
    except Exception as error:
        raise CompileError(
            f"Triton cannot compile {function.__name__} for {arch}: {error}"
        ) from error
    only_ptx = match[1] == "compute"
    constants = {
        one.name: argument.value
        for one, argument in zip(function.params, arguments, strict=True)
        if one.is_constexpr
    }
    runtime = [
        argument
        for one, argument in zip(function.params, arguments, strict=True)
        if not one.is_constexpr
    ]
    return variant_of(
        compiled.asm["cubin"],
        compiled.asm["ptx"] if keep_ptx or only_ptx else None,
        LaunchFacts.from_metadata(compiled.metadata),
        runtime,
        _saveable(constants),
        _shown_options(options),
        members,
        only_ptx=only_ptx,
    )


def make_source(function: Any, arguments: Sequence[Argument]) -> Any:
    """Make what Triton's compiler takes."""
    names = [one.name for one in function.params]
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], list[list[Any]]] = {}
    for i, argument in enumerate(arguments):
        _collect((i,), argument.type, argument.key, argument.value, constants, attributes)
    signature = {name: one.type for name, one in zip(names, arguments, strict=True)}
    source_type = triton_module("compiler").ASTSource
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
        constants[path] = value
    elif key == "D":
        attributes[path] = [["tt.divisibility", 16]]


def variant_of(
    cubin: bytes,
    ptx: str | bytes | None,
    facts: LaunchFacts,
    arguments: Iterable[Argument],
    constants: dict[str, Any],
    options: dict[str, Any],
    members: dict[str, bytes],
    *,
    only_ptx: bool = False,
) -> SavedVariant:
    """Make a variant of compiled code, checked against it; its images join `members`."""
    arguments = list(arguments)
    image = Image(cubin)
    kernels = [one for one in image.kernels if one.name == facts.name]
    if len(kernels) != 1:
        raise ValueError(f"the cubin has no kernel {facts.name}")
    types = tuple(one.type for one in arguments)
    make_sources(types, facts, [(one.offset, one.size) for one in kernels[0].params])
    text = ptx.encode() if isinstance(ptx, str) else ptx
    arch = image.arch[0]
    if only_ptx:
        assert text is not None
        arch = Image(text).arch[0].replace("sm_", "compute_")
    return SavedVariant(
        arch=arch,
        types=types,
        keys=tuple(one.key for one in arguments),
        constants=constants,
        options=options,
        facts=facts,
        image=None if only_ptx else _member(members, cubin, "cubin"),
        ptx=None if text is None else _member(members, text, "ptx"),
    )


def _member(members: dict[str, bytes], data: bytes, suffix: str) -> str:
    """Name an image by its contents: equal ones are kept once."""
    name = f"images/{hashlib.sha256(data).hexdigest()[:20]}.{suffix}"
    members[name] = data
    return name


def _shown_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the options that can be written down."""
    kept = {}
    for name, value in options.items():
        try:
            encode(value)
        except TypeError:
            continue
        if value is not None:
            kept[name] = value
    return kept


def _saveable(constants: dict[str, Any]) -> dict[str, Any]:
    """Refuse, before anything is compiled for it, a constant that no file can hold."""
    for value in constants.values():
        encode(value)
    return constants
