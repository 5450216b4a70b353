"""Kernels that are already compiled: from Triton's cache, or from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_list, checked_path, checked_text
from culaunch._base.values import counted, spell
from culaunch._errors import ImageError
from culaunch._triton.calls.parameters import TritonParameter, parameters_of
from culaunch._triton.compiling.make_variant import make_variant
from culaunch._triton.compiling.signature import Argument, make_constant, parse_signature
from culaunch._triton.kernel_set import KernelSet
from culaunch._triton.saved.set import SavedSet
from culaunch._triton.variants.constants import like_tuple, normal_constant
from culaunch._triton.variants.launch_facts import LaunchFacts

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from culaunch._triton.saved.variant import SavedVariant


def from_compiled(kernel: Any, signature: str | None = None) -> KernelSet:
    """Make a set of one kernel that Triton has compiled.

    Parameters
    ----------
    kernel : triton.compiler.CompiledKernel
        The result of ``triton.compile``, a launch or ``warmup``.
    signature : str, optional
        The types of the kernel's arguments, as for :func:`compile`. Required if the kernel was
        compiled from IR.

    Returns
    -------
    KernelSet
        A set with this one variant.

    Raises
    ------
    ValueError, TypeError
        If an argument has another type, or a required signature is missing.
    ImageError
        If the signature does not match the binary.

    Examples
    --------
    >>> import triton as upstream
    >>> from culaunch import triton
    >>> from kernels import scale
    >>> types = {"x": "*fp32", "out": "*fp32", "factor": "fp32", "n": "i32", "BLOCK": "constexpr"}
    >>> source = upstream.compiler.ASTSource(scale, types, {"BLOCK": 128})
    >>> target = upstream.backends.compiler.GPUTarget("cuda", 80, 32)
    >>> compiled = upstream.compile(source, target=target)
    >>> triton.from_compiled(compiled).name
    'scale'
    """
    return KernelSet(saved_of_compiled(kernel, signature))


def saved_of_compiled(kernel: Any, signature: str | None = None) -> SavedSet:
    """Do the same, but return the inner saved set."""
    if not hasattr(kernel, "metadata") or not hasattr(kernel, "asm"):
        raise TypeError(
            f"kernel must be a CompiledKernel from Triton (got {spell(kernel)}): the "
            "kernel's warmup() gives one"
        )
    if signature is not None:
        checked_text("signature", signature)
    facts = LaunchFacts.from_metadata(kernel.metadata)
    members: dict[str, bytes] = {}
    ptx = kernel.asm.get("ptx")
    source = kernel.src
    # Kernels compiled from IR have no Python function, and therefore no names and no constants.
    if signature is not None or not hasattr(source, "fn"):
        parameters, arguments = _anonymous(signature, None, facts.name)
        made = make_variant(kernel.asm["cubin"], ptx, facts, arguments, {}, {}, members)
        return _set_of(facts.name, parameters, made, members)
    function = source.fn
    arguments = _arguments_of(source)
    constants = {
        one.name: normal_constant(argument.value)
        for one, argument in zip(function.params, arguments, strict=True)
        if one.is_constexpr
    }
    runtime = [
        argument
        for one, argument in zip(function.params, arguments, strict=True)
        if not one.is_constexpr
    ]
    made = make_variant(kernel.asm["cubin"], ptx, facts, runtime, constants, {}, members)
    return _set_of(function.__name__, parameters_of(function, frozenset()), made, members)


def from_cache(
    directory: str | os.PathLike[str],
    signature: str,
    *,
    names: Sequence[str] | None = None,
    kernel: str | None = None,
) -> KernelSet:
    """Make a set from an entry of Triton's cache. Triton need not be installed.

    Parameters
    ----------
    directory : str or os.PathLike
        A folder of ``~/.triton/cache`` with ``<kernel>.cubin`` and ``<kernel>.json``.
    signature : str
        The types of the kernel's run-time arguments, as for :func:`compile`: the cache does not
        store them. They are checked against the binary.
    names : sequence of str, optional
        The arguments' names, for calls with keywords.
    kernel : str, optional
        The name of the kernel, if the folder has several.

    Returns
    -------
    KernelSet
        A set with this one variant.

    Raises
    ------
    FileNotFoundError
        If the folder has no compiled kernel.
    ImageError
        If the metadata is damaged, or the signature does not match the binary.
    TypeError, ValueError
        If an argument is invalid.

    Examples
    --------
    >>> from culaunch import triton
    >>> folder = "~/.triton/cache/..."  # the entry of a kernel
    >>> kernels = triton.from_cache(
    ...     folder, "*fp32, *fp32, fp32, i32", names=["x", "out", "factor", "n"]
    ... )  # doctest: +SKIP
    """
    folder = Path(checked_path("directory", directory))
    checked_text("signature", signature)
    if names is not None:
        names = [
            checked_text("a name in names", one)
            for one in checked_list("names", names, "the arguments' names")
        ]
    if kernel is not None:
        checked_text("kernel", kernel)
    found = sorted(
        path
        for path in folder.glob("*.json")
        if path.with_suffix(".cubin").is_file() and kernel in (None, path.stem)
    )
    if len(found) != 1:
        have = ", ".join(path.stem for path in found) or "none"
        raise FileNotFoundError(
            f"{folder} must hold one kernel, a .cubin and a .json with the same name (found {have})"
        )
    try:
        metadata = json.loads(found[0].read_text())
        facts = LaunchFacts.from_metadata(metadata)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ImageError(
            f"this is not the metadata of a Triton kernel: {type(error).__name__} {error}",
            source=str(found[0]),
        ) from None
    parameters, arguments = _anonymous(signature, names, facts.name)
    ptx = found[0].with_suffix(".ptx")
    members: dict[str, bytes] = {}
    made = make_variant(
        found[0].with_suffix(".cubin").read_bytes(),
        ptx.read_bytes() if ptx.is_file() else None,
        facts,
        arguments,
        {},
        {},
        members,
    )
    return KernelSet(_set_of(facts.name, parameters, made, members))


def _set_of(
    name: str,
    parameters: Sequence[TritonParameter],
    variant: SavedVariant,
    members: dict[str, bytes],
) -> SavedSet:
    return SavedSet(name, tuple(parameters), (variant,), members.__getitem__)


def _anonymous(
    signature: str | None, names: Sequence[str] | None, kernel: str
) -> tuple[list[TritonParameter], list[Argument]]:
    """Make parameters from a signature only. Omit constants, which no binary contains."""
    if signature is None:
        raise ValueError(
            f"the types of the arguments of {kernel} are not stored with it: give signature=, such "
            'as "*fp32:16, *fp32:16, i32"'
        )
    arguments = [one for one in parse_signature(signature) if not _is_value(one)]
    if names is None:
        names = [f"arg{i}" for i in range(len(arguments))]
    if len(names) != len(arguments):
        raise ValueError(
            f"names must have {counted(len(arguments), 'entry')}, one for each run-time argument "
            "of the "
            f"signature (got {len(names)})"
        )
    return [TritonParameter(name=name) for name in names], arguments


def _is_value(argument: Argument) -> bool:
    return argument.is_constant and argument.key is None and argument.value is not None


def _arguments_of(source: Any) -> list[Argument]:
    """Read the arguments of a kernel's source as Triton keeps them."""
    function = source.fn
    by_path = {
        (function.arg_names.index(path),) if isinstance(path, str) else tuple(path): value
        for path, value in source.constants.items()
    }
    attributes = {tuple(path): value for path, value in (source.attrs or {}).items()}
    return [
        # Triton does not require an entry for a constant: ASTSource(kernel, {"x": "*fp32"}, ...).
        _argument(
            (i,), source.signature.get(name, "constexpr"), by_path, attributes, one.is_constexpr
        )
        for i, (name, one) in enumerate(zip(function.arg_names, function.params, strict=True))
    ]


def _argument(
    path: tuple[int, ...],
    kind: Any,
    constants: dict[tuple[int, ...], Any],
    attributes: dict[tuple[int, ...], Any],
    is_constexpr: bool,
) -> Argument:
    if isinstance(kind, tuple):
        items = [
            _argument((*path, i), item, constants, attributes, is_constexpr)
            for i, item in enumerate(kind)
        ]
        return Argument(
            like_tuple(kind, (item.type for item in items)),
            tuple(item.key for item in items),
            tuple(item.value for item in items),
        )
    if kind == "constexpr":
        value = constants.get(path)
        if is_constexpr or value is None:
            return make_constant(value)
        # Only the types of the arguments are checked against the binary, because it has no folded
        # constants.
        if type(value) is int and value == 1:
            return Argument("constexpr", 1, 1)
        raise ValueError(
            f"argument {path[0]} is folded as {value!r:.80}: a saved kernel can fold only 1 and "
            "None"
        )
    divisible = any(name == "tt.divisibility" for name, _ in attributes.get(path, ()))
    return Argument(kind, "D" if divisible else ("" if kind[0] in "iu*" and kind != "u1" else None))
