"""The launch of a compiled variant in a body: its parameters, scratch memory and configuration."""

# ruff: noqa: SLF001 - a dispatcher's own names begin with an underscore: the others are Triton's

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.values import spell
from culaunch._triton.variants.parameter_sources import (
    BASE,
    FILLS_NAN,
    GLOBAL,
    PROFILE,
    SHAPE,
    STRIDE,
    TENSOR_MAP,
    VALUE,
)

if TYPE_CHECKING:
    from culaunch._core import TritonVariant
    from culaunch._launch.launches.recording import RecordingBody
    from culaunch._triton.bodies.arguments import BodyArguments
    from culaunch._triton.calls.dispatcher import Dispatcher


# CUtensorMapInterleave and CUtensorMapL2promotion, as Triton's own launcher sets them.
_NO_INTERLEAVE, _PROMOTION_128B = 0, 2


class VariantFacts(NamedTuple):
    """The inputs of a variant, in the order of the native object's ``_description``."""

    sources: tuple[tuple[int, int, int], ...]
    layouts: tuple[Any, ...]
    threads: int
    ctas: int
    shared: int
    cooperative: bool
    programmatic: bool
    global_scratch: int
    global_alignment: int
    profile_scratch: int
    profile_alignment: int
    constants: dict[str, Any]


class VariantLaunch:
    """The launch of the variant that one call selects.

    Parameters
    ----------
    body : RecordingBody
    dispatcher : Dispatcher
    arguments : BodyArguments
    """

    def __init__(
        self, body: RecordingBody, dispatcher: Dispatcher, arguments: BodyArguments
    ) -> None:
        self.body = body
        self.name = dispatcher.name
        self.arguments = arguments
        # Another architecture needs another variant.
        for part in ("compute_capability_major", "compute_capability_minor"):
            int(body.device.attribute(part))
        with body.apart():
            variant: TritonVariant | None = dispatcher._miss(  # type: ignore[attr-defined]
                arguments.compiled, arguments.options, arguments.description, body.ordinal
            )
        if variant is None:
            raise TypeError(
                f"{self.name}: a Triton hook takes over its compilation, so there is nothing to "
                "record"
            )
        self.variant = variant
        dispatcher._note_reads(body)
        self.facts = VariantFacts(*self.variant._description)

    def record(self, grid: Any) -> None:
        """Record it, with the call's grid."""
        facts = self.facts
        x, y, z = self._grid(grid)
        x = x * facts.ctas
        blocks = x * y * z
        if type(blocks) is int and blocks == 0:
            return  # an empty grid launches nothing, as in Triton
        has_blocks = None if type(blocks) is int else blocks != 0
        args = []
        for leaf, part, index in facts.sources:
            if part == VALUE:
                args.append(self._value(leaf))
            elif part == GLOBAL:
                args.append(self._scratch(blocks, facts.global_scratch))
            elif part == PROFILE:
                args.append(self._scratch(blocks, facts.profile_scratch))
            else:
                args.append(self._part(self.arguments.leaves[leaf], part, index))
        self.body.launch(
            self.variant.kernel,
            args,
            predicate=has_blocks,
            grid=(x, y, z),
            block=facts.threads,
            cluster=(facts.ctas, 1, 1) if facts.ctas > 1 else None,
            spread_clusters=facts.ctas > 1,
            shared_memory=facts.shared,
            cooperative=facts.cooperative,
            programmatic=facts.programmatic,
        )

    def _value(self, leaf: int) -> Any:
        value, kind = self.arguments.leaves[leaf], self.arguments.types[leaf]
        if kind.startswith("fp") and self.body.what(value) in ("int", "bool"):
            return value * 1.0
        if kind in ("u1", "i1"):
            return value if self.body.what(value) == "bool" else value != 0
        if kind[0] in "iu" and self.body.what(value) == "bool":
            return value * 1
        return value

    def _part(self, descriptor: Any, part: int, index: int) -> Any:
        """Return the part of a tensor descriptor for a parameter."""
        fills_nan = getattr(descriptor, "padding", "zero") == "nan"
        if part == BASE:
            return descriptor.base
        if part == SHAPE:
            return descriptor.shape[index]
        if part == STRIDE:
            return descriptor.strides[index]
        if part == TENSOR_MAP:
            swizzle, _, element, box, is_fp4_padded = self.facts.layouts[index]
            if is_fp4_padded:
                raise TypeError(
                    f"{self.name} takes padded 4-bit numbers, which a function cannot pass"
                )
            return self.body.box_map(
                descriptor.base, descriptor.shape, descriptor.strides, box,
                (element, _NO_INTERLEAVE, swizzle, _PROMOTION_128B, int(fills_nan)),
            )  # fmt: skip
        return fills_nan if part == FILLS_NAN else False

    def _scratch(self, blocks: Any, size: int) -> Any:
        """Return memory for all blocks from the framework's allocator; None if it is not needed."""
        return None if size == 0 else self.body.empty((blocks * size,), "uint8")

    def _grid(self, grid: Any) -> tuple[Any, Any, Any]:
        if callable(grid):
            with self.body.active():
                grid = grid({**self.arguments.values, **self.facts.constants})
        sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        if not 1 <= len(sizes) <= 3 or any(self.body.what(size) != "int" for size in sizes):
            raise TypeError(
                "a grid must be a tuple of 1 to 3 ints, or a function that returns one (got "
                f"{spell(grid)})"
            )
        for size in sizes:
            self.body.check(
                size >= 0, lambda: f"a grid of {self.name} must not be negative", ValueError
            )
        return (*sizes, *[1] * (3 - len(sizes)))
