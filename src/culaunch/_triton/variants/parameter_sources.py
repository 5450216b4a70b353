"""Maps the types of a kernel's arguments to the parameters of its image, and checks both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._core import NUMBERS
from culaunch._errors import ImageError
from culaunch._triton.upstream.versions import NEWEST_KNOWN, parse_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from culaunch._triton.variants.launch_facts import LaunchFacts

_PARTS = NUMBERS["TritonPart"]
VALUE, TENSOR_MAP, BASE = _PARTS["VALUE"], _PARTS["TENSOR_MAP"], _PARTS["BASE"]
SHAPE, STRIDE = _PARTS["SHAPE"], _PARTS["STRIDE"]
FILLS_NAN, ROUNDS_TO_TF32 = _PARTS["FILLS_NAN"], _PARTS["ROUNDS_TO_TF32"]
GLOBAL, PROFILE = _PARTS["GLOBAL"], _PARTS["PROFILE"]

_DESCRIPTOR = re.compile(r"tensordesc<([^\[<>]*)\[([^\]]*)\]")
SIZES = {
    "i1": 1, "u1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "fp16": 2, "bf16": 2, "fp32": 4, "f32": 4, "fp64": 8,
}  # fmt: skip


@dataclass(frozen=True)
class ParameterSource:
    """The source of one parameter of the image, and its required size."""

    leaf: int
    part: int
    index: int
    size: int
    type: str

    @property
    def packed(self) -> tuple[int, int, int]:
        """The form that the native variant accepts."""
        return (self.leaf, self.part, self.index)


def leaves_of(types: Sequence[Any]) -> Iterator[str]:
    """Flatten the types of run-time arguments; tuples depth first."""
    for one in types:
        if isinstance(one, (tuple, list)):
            yield from leaves_of(one)
        else:
            yield str(one)


def parameter_sources(
    types: Sequence[Any], facts: LaunchFacts, layout: Sequence[tuple[int, int]]
) -> tuple[ParameterSource, ...]:
    """Name the source of each parameter.

    Parameters
    ----------
    types : sequence
        For each run-time parameter of the Python function Triton's type, or a tuple of them;
        ``"constexpr"`` for what is folded.
    facts : LaunchFacts
    layout : sequence of (offset, size)
        The parameters of the image.

    Raises
    ------
    ImageError
        If the image's parameters are not these: it was compiled for other types, or by a version
        of Triton that passes something else.
    """
    # The compiled kernel splits tuples: each leaf is a parameter.
    leaves = tuple(leaves_of(types))
    sizes = [size for _, size in layout]
    candidates = []
    # If a descriptor is split, Triton's versions differ in the flags among its parts. The sizes of
    # the image's parameters select the layout. All candidates have different lengths, so the result
    # is unique.
    for flags in (0, 1, 2) if any(map(_DESCRIPTOR.match, leaves)) else (0,):
        sources = [*_visible(leaves, facts, flags), *_hidden(facts)]
        if [source.size for source in sources] == sizes:
            return tuple(sources)
        candidates.append(sources)
    raise ImageError(_explain(facts, candidates[0], sizes))


def _visible(leaves: Sequence[str], facts: LaunchFacts, flags: int) -> Iterator[ParameterSource]:
    descriptors = 0
    for leaf, kind in enumerate(leaves):
        if kind == "constexpr":
            continue
        match = _DESCRIPTOR.match(kind)
        if match is None:
            yield ParameterSource(leaf, VALUE, 0, size_of(kind), kind)
            continue
        rank = match[2].count(",") + 1
        if facts.descriptors:
            yield ParameterSource(leaf, TENSOR_MAP, descriptors, 128, kind)
        else:
            yield ParameterSource(leaf, BASE, 0, 8, kind)
            yield from (ParameterSource(leaf, SHAPE, i, 8, kind) for i in range(rank))
            yield from (ParameterSource(leaf, STRIDE, i, 8, kind) for i in range(rank))
            yield from (ParameterSource(leaf, FILLS_NAN + i, 0, 1, kind) for i in range(flags))
        # After the descriptor, in either form, come its sizes as 32-bit and its strides as 64-bit
        # numbers.
        yield from (ParameterSource(leaf, SHAPE, i, 4, kind) for i in range(rank))
        yield from (ParameterSource(leaf, STRIDE, i, 8, kind) for i in range(rank))
        descriptors += 1


def _hidden(facts: LaunchFacts) -> list[ParameterSource]:
    both = [
        ParameterSource(0, GLOBAL, 0, 8, "global_scratch"),
        ParameterSource(0, PROFILE, 0, 8, "profile_scratch"),
    ]
    return both[: facts.hidden]


def size_of(kind: str) -> int:
    """Return the size in bytes of a parameter with a Triton type."""
    if kind.startswith("*"):
        return 8
    size = SIZES.get(kind)
    if size is None:
        raise TypeError(f"culaunch cannot pass arguments of the Triton type {kind!r}")
    return size


def _explain(facts: LaunchFacts, sources: Sequence[ParameterSource], sizes: Sequence[int]) -> str:
    expected = ", ".join(f"{source.type} {source.size}" for source in sources)
    newer = ""
    if parse_version(facts.triton_version) > NEWEST_KNOWN:
        known = ".".join(map(str, NEWEST_KNOWN))
        newer = (
            f" This version is newer than the newest that culaunch knows, {known}: its kernels may "
            "take other hidden parameters. Compile with an older one, or update culaunch."
        )
    return (
        f"the parameters of {facts.name}, compiled by Triton {facts.triton_version}, should be "
        f"({expected}) bytes, {len(sources)} in all; the image has {len(sizes)}: "
        f"({', '.join(map(str, sizes))}).{newer}"
    )
