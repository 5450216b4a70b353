"""Makes a saved variant from the output of Triton's compiler, checked against the binary."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from culaunch._image import Image
from culaunch._triton.saved.variant import SavedVariant
from culaunch._triton.variants.checks import check_arch, check_arguments, check_symbol
from culaunch._triton.variants.parameter_sources import parameter_sources

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._triton.compiling.signature import Argument
    from culaunch._triton.variants.launch_facts import LaunchFacts


def make_variant(
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
    """Make a variant of compiled code, check it, and add its images to `members`.

    Raises
    ------
    ValueError
        If the cubin has no such kernel, or an argument has a type that a file cannot hold.
    ImageError
        If the kernel's parameters differ.
    """
    arguments = list(arguments)
    image = Image(cubin)
    kernels = [one for one in image.kernels if one.name == facts.name]
    if len(kernels) != 1:
        raise ValueError(f"the cubin has no kernel {facts.name!r:.80}")
    check_symbol(facts.name)
    types = tuple(one.type for one in arguments)
    keys = tuple(one.key for one in arguments)
    check_arguments(types, keys)
    # Called only to refuse a set that could not be launched.
    parameter_sources(types, facts, [(one.offset, one.size) for one in kernels[0].parameters])
    text = ptx.encode() if isinstance(ptx, str) else ptx
    arch = image.arch[0]
    if only_ptx:
        assert text is not None
        arch = Image(text).arch[0].replace("sm_", "compute_")
    return SavedVariant(
        arch=check_arch(arch),
        types=types,
        keys=keys,
        constants=constants,
        options=options,
        facts=facts,
        image=None if only_ptx else _member(members, cubin, "cubin"),
        ptx=None if text is None else _member(members, text, "ptx"),
    )


def _member(members: dict[str, bytes], data: bytes, suffix: str) -> str:
    """Name an image by its contents, so equal images are stored once."""
    name = f"images/{hashlib.sha256(data).hexdigest()[:20]}.{suffix}"
    members[name] = data
    return name
