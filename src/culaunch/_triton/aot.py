"""Compile a Triton kernel ahead of time, for any architecture, with no GPU."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from culaunch._base.values import counted, spell
from culaunch._triton.calls.parameters import parameters_of
from culaunch._triton.compiling.compile_variant import backend_of
from culaunch._triton.compiling.compile_variants import VariantRequest, compile_variants
from culaunch._triton.compiling.decorated import Decorated
from culaunch._triton.compiling.given_grid import check_numbers, grid_expressions
from culaunch._triton.compiling.heuristics import Heuristics
from culaunch._triton.compiling.settings import check_config, check_constants, check_options
from culaunch._triton.compiling.signature import Argument, make_constant, parse_signature
from culaunch._triton.kernel_set import KernelSet
from culaunch._triton.saved.set import SavedSet

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable

    from culaunch._farm.progress import Progress
    from culaunch._triton.compiling.hooks import SavedHooks


def compile(  # noqa: A001
    kernel: Any,
    signature: str | Sequence[str],
    *,
    arch: str | Sequence[str],
    constants: Mapping[str, Any] | None = None,
    configs: Sequence[Mapping[str, Any]] | None = None,
    keep_ptx: bool = False,
    grid: Any = None,
    executor: concurrent.futures.Executor | None = None,
    progress: bool | Callable[[Progress], object] = False,
    **options: Any,
) -> KernelSet:
    """Compile a kernel for several signatures, configurations and architectures, without a GPU.

    Parameters
    ----------
    kernel : triton.runtime.JITFunction, Autotuner or Heuristics
        The kernel that ``@triton.jit`` returns. With ``@triton.autotune`` above it, its
        configurations are compiled: all of them, or, if it has tuned already, only those that it
        chose, with the table of its choices. A ``pre_hook`` of a configuration is Python code and
        cannot be saved. There is one exception: a hook that only sets arguments to zero
        (``kw["out_ptr"].zero_()``), or blocks of tensor descriptors to numbers
        (``kw["desc"].block_shape = [kw["BLOCK"], 64]``). The set does that before each launch.
        Heuristics become expressions if their code is arithmetic and comparisons of arguments.
        Values that the signature and the constants decide are compiled in. If only a call can
        decide between values that the code names, such as True and False, all forms are compiled.
        Give the values of other heuristics in `constants` or `configs`, and in every call if they
        are not expressions.
    signature : str or sequence of str
        One entry for each argument that is not a constant, as in ``"*fp32:16, *fp32:16, i32,
        i32:1"``: ``:16`` promises divisibility by 16, ``:1`` folds an int that is always 1. ``(i32,
        *fp16)`` is a tuple, ``(n=i32, x=*fp16)`` a named one. Constants may also stand in their
        places.
    arch : str or sequence of str
        ``"sm_80"``, ``"sm_90a"``, ...; ``"compute_80"`` keeps only PTX, which newer devices accept.
        From sm_90 on, Triton compiles for exactly one architecture, whose name ends in ``a``.
    constants : mapping, optional
        Values of the kernel's constants by name.
    configs : sequence of mapping, optional
        Each mapping sets constants and options, which override those of the call.
    keep_ptx : bool, optional
        Keep the PTX beside each cubin, for the emulator.
    grid : str, callable or sequence of int, optional
        The default grid of a call: ``"cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 1, 1"``, or a function
        of the arguments by name that computes a grid in the same way.
    executor : concurrent.futures.Executor, optional
        An executor that compiles the variants, as for :func:`culaunch.compiling.compile_many`. Its
        workers import the kernel by its name, so it must be at the top level of a module. Without
        an executor, this process compiles them one after the other.
    progress : bool or callable, optional
        With an executor: True draws a progress bar, and a callable receives a
        :class:`culaunch.compiling.Progress`.
    **options
        Triton's compile options: ``num_warps``, ``num_stages``, ``num_ctas``, ...

    Returns
    -------
    KernelSet

    Raises
    ------
    ValueError, TypeError
        If the signature, a constant or an option does not match the kernel, or the kernel has a
        hook that cannot be saved.
    CompileError
        If Triton cannot compile it.
    MissingDependencyError
        If Triton is not installed.

    Examples
    --------
    >>> from culaunch import triton
    >>> from kernels import SIGNATURE, scale
    >>> kernels = triton.compile(
    ...     scale, SIGNATURE, arch="sm_80", configs=[{"BLOCK": 128}], keep_ptx=True
    ... )
    >>> kernels[(2,)](x, y, 2.0, 256, BLOCK=128)
    >>> y.numpy()[:3].tolist()
    [2.0, 2.0, 2.0]
    """
    decorated = Decorated.of(kernel)
    function = decorated.function
    hooks = decorated.hooks(has_own_configs=configs is not None)
    table = None
    # Configurations named by the caller replace the autotuner's, and its table of choices with
    # them: the table would name variants that are not compiled.
    if configs is None:
        configs, table = decorated.configs()
    signatures = _texts("signature", signature)
    arches = _texts("arch", arch)
    if constants is not None and not isinstance(constants, Mapping):
        raise TypeError(f"constants must be a mapping of names (got {spell(constants)})")
    if configs is not None and not (
        isinstance(configs, Sequence) and all(isinstance(one, Mapping) for one in configs)
    ):
        raise TypeError(f"configs must be a sequence of mappings (got {spell(configs)})")
    if not signatures or not arches or (configs is not None and not configs):
        raise ValueError("signature, arch and configs must not be empty")
    names = set(function.arg_names)
    check_constants(function, constants or {})
    # Check all options before the first compilation: a compilation takes seconds, and a misspelled
    # option should not be found after many of them.
    for target, config in itertools.product(arches, configs or ({},)):
        check_config(function, config)
        given = {name: value for name, value in {**options, **config}.items() if name not in names}
        where = f"the configuration {dict(config)}" if config else "the call"
        check_options(function, given, backend_of(target), where)
    heuristics = Heuristics(function, decorated.heuristics)
    sizes = grid_expressions(grid, function)
    work = []
    for text, config, target in itertools.product(signatures, configs or ({},), arches):
        settings = {**(constants or {}), **options, **config}
        extra = {name: value for name, value in settings.items() if name not in names}
        for arguments, decided in _cases(function, text, settings, config, heuristics, hooks):
            check_options(function, decided, backend_of(target), "a heuristic")
            work.append(VariantRequest(arguments, target, {**extra, **decided}, keep_ptx))
    names_in_order = [one.name for one in function.params]
    types = [
        dict(zip(names_in_order, (one.type for one in request.arguments), strict=True))
        for request in work
    ]
    check_numbers(sizes, types, function.__name__)
    # Keep the order of signatures, configurations, architectures: the first of several equally good
    # variants is used.
    variants, members = compile_variants(function, work, executor, progress)
    parameters = tuple(
        replace(one, is_heuristic=one.name in heuristics.names)
        for one in parameters_of(function, frozenset())
    )
    saved = SavedSet(
        function.__name__, parameters, tuple(variants), members.__getitem__, table, hooks.zeroes,
        heuristics.saved, sizes, hooks.blocks,
    )  # fmt: skip
    return KernelSet(saved)


def _texts(what: str, given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, Sequence) or not all(isinstance(one, str) for one in texts):
        raise TypeError(f"{what} must be a str, or a sequence of str (got {spell(given)})")
    return list(texts)


def _cases(
    function: Any,
    text: str,
    settings: Mapping[str, Any],
    config: Mapping[str, Any],
    heuristics: Heuristics,
    hooks: SavedHooks,
) -> Iterator[tuple[list[Argument], dict[str, Any]]]:
    """Yield the kernel's arguments, and the options that heuristics set, for each variant."""
    names = {*function.arg_names, *heuristics.options}
    fixed = {name: value for name, value in settings.items() if name in names}
    # The signature omits arguments of heuristics, because their values are computed.
    open_ones = [one for one in function.params if not heuristics.is_given(one.name)]
    is_own = {one.name for one in open_ones}
    own = {name: value for name, value in fixed.items() if name in is_own}
    by_name = hooks.apply(_arguments(function, open_ones, text, own), config, settings)
    for case in heuristics.cases(by_name, fixed, text):
        decided = {name: value for name, value in case.items() if name in heuristics.options}
        constants = {name: make_constant(case[name]) for name in case.keys() - decided.keys()}
        made = {**by_name, **constants}
        yield [made[one.name] for one in function.params], decided


def _arguments(
    function: Any, parameters: Sequence[Any], text: str, fixed: Mapping[str, Any]
) -> dict[str, Argument]:
    """Return an argument for each of some parameters."""
    given = parse_signature(text)
    open_names = [one.name for one in parameters if one.name not in fixed]
    required = [
        one.name
        for one in parameters
        if one.name not in fixed and not (one.is_constexpr and one.has_default)
    ]
    # The length distinguishes the three forms of a signature: all parameters, the open ones, or the
    # open ones without a default.
    if len(given) == len(parameters) != len(open_names):
        names = [one.name for one in parameters]  # constants take their places
    else:
        names = open_names if len(given) == len(open_names) else required
    if len(given) != len(names):
        raise ValueError(
            f"{function.__name__} needs a signature of {counted(len(names), 'entry')}, for "
            f"{', '.join(names)} (got {len(given)} in {text!r}). Pass constants with "
            "constants={...}, on the command line with --constant NAME=VALUE"
        )
    by_name = dict(zip(names, given, strict=True))
    arguments = {}
    for one in parameters:
        argument = by_name.get(one.name)
        if one.name in fixed:
            if argument is not None and argument.value != fixed[one.name]:
                raise ValueError(
                    f"{one.name} has two different values, in signature and in "
                    "constants: give it once"
                )
            argument = make_constant(fixed[one.name])
        elif argument is None:
            argument = make_constant(one.default)
        if one.is_constexpr and not argument.is_constant:
            raise ValueError(
                f"{one.name} of {function.__name__} is a constexpr: give its value, in the "
                f'signature or with constants={{"{one.name}": ...}}'
            )
        if not one.is_constexpr:
            argument = _folded(one.name, argument)
        arguments[one.name] = argument
    return arguments


def _folded(name: str, argument: Argument) -> Argument:
    """Find constants among the run-time arguments: Triton folds only None and 1."""
    if isinstance(argument.type, tuple):
        items = [
            _folded(name, Argument(*item))
            for item in zip(argument.type, argument.key, argument.value, strict=True)
        ]
        return Argument(
            argument.type,
            tuple(item.key for item in items),
            tuple(item.value for item in items),
        )
    if not argument.is_constant or argument.value is None:
        return argument
    if argument.value == 1 and type(argument.value) is int:
        return Argument("constexpr", 1, 1)
    raise ValueError(
        f"{name} is not a constexpr, and only the values 1 and None can be folded for it (got "
        f"{argument.value!r:.60}). "
        "Give a type, with :16 if it is always divisible by 16"
    )
