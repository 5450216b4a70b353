"""The parameters of a C function: a kernel's arguments, regardless of what its variants fold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from culaunch._triton.c_output.names import NameSpace
from culaunch._triton.variants.parameter_sources import leaves_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from culaunch._triton.calls.parameters import TritonParameter
    from culaunch._triton.saved.variant import SavedVariant

C_TYPES = {
    "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "u1": "uint8_t",
    "i1": "uint8_t", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
    "fp16": "uint16_t", "bf16": "uint16_t", "fp32": "float", "f32": "float", "fp64": "double",
}  # fmt: skip
POINTER = "CUdeviceptr"
DESCRIPTOR = "const culaunch_tensor_descriptor *"


@dataclass(frozen=True)
class CParameter:
    """A parameter of the C function: a leaf of the kernel's arguments."""

    name: str
    """In C."""
    argument: str
    """The kernel's argument; "" for an item of a tuple."""
    type: str
    leaf: int
    rank: int = 0
    """The rank of a tensor descriptor; else 0."""
    bytes: str = ""
    """The name of the parameter behind it, which is the size of an array that is set to zero before
    each launch; else ""."""

    @property
    def declarations(self) -> list[str]:
        """Its text in a list of parameters."""
        size = [f"uint64_t {self.bytes}"] if self.bytes else []
        return [f"{self.type} {self.name}", *size]

    @property
    def names(self) -> list[str]:
        """Its text in a call that passes it on."""
        return [self.name, *([self.bytes] if self.bytes else [])]

    @property
    def is_descriptor(self) -> bool:
        """Whether it is a tensor descriptor."""
        return self.type == DESCRIPTOR


class CParameters:
    """All parameters except the stream, the grid and the configuration.

    They depend on the kind of argument, and not on the single variants. An int of 32 or 64 bits is
    an ``int64_t``, which is checked. An argument that is None or 1 in all variants is a parameter,
    too.

    Parameters
    ----------
    parameters : sequence of TritonParameter
    variants : sequence of SavedVariant
        The variants of the function.
    taken : iterable of str
        Macro names that the header uses.
    zeroes : sequence of str
        The arguments that are set to zero before each launch.

    Raises
    ------
    ValueError
        If C cannot express an argument; the message names it.
    """

    def __init__(
        self,
        parameters: Sequence[TritonParameter],
        variants: Sequence[SavedVariant],
        taken: Iterable[str],
        zeroes: Sequence[str] = (),
    ) -> None:
        names = NameSpace(taken)
        columns = zip(*(leaves_of(one.types) for one in variants), strict=True)
        keys = zip(*(leaf_keys(one.types, one.keys) for one in variants), strict=True)
        self.all = [
            CParameter(
                names.add(name), argument, _c_type(set(kinds), set(found), name), leaf,
                rank_of(kinds[0]),
            )
            for leaf, ((name, argument), kinds, found) in enumerate(
                zip(_leaf_names(parameters, variants[0]), columns, keys, strict=True)
            )
        ]  # fmt: skip
        for name in zeroes:
            self._add_size(name, names)
        self.by_leaf = {one.leaf: one for one in self.all}

    def _add_size(self, name: str, names: NameSpace) -> None:
        for i, one in enumerate(self.all):
            if one.argument == name and one.type == POINTER:
                self.all[i] = replace(one, bytes=names.add(f"{name}_bytes"))
                return
        raise ValueError(f"C cannot set argument {name} to zero: it is not an array")


def _c_type(kinds: set[str], keys: set[Any], name: str) -> str:
    # A leaf may be open in one variant and folded in another, but C has one type for both.
    is_none_somewhere = "constexpr" in kinds and None in keys
    open_kinds = kinds - {"constexpr"}
    if not open_kinds:
        return POINTER if keys == {None} else "int64_t"
    if all(kind.startswith("*") for kind in open_kinds):
        if 1 not in keys:
            return POINTER
    elif all(kind.startswith("tensordesc<") for kind in open_kinds) and "constexpr" not in kinds:
        return DESCRIPTOR
    elif not is_none_somewhere:
        # In Python, a number's value determines its size. C passes an i32 as 64 bits, and a variant
        # for i32 checks that the value fits. A large value selects another variant, as in Python.
        types = {"int64_t" if kind == "i32" else C_TYPES.get(kind, "") for kind in open_kinds}
        if len(types) == 1 and "" not in types:
            return types.pop()
    shown = sorted(kind if kind != "constexpr" else "None or 1" for kind in kinds)
    raise ValueError(
        f"C cannot express argument {name} of type {', '.join(shown)}: leave these variants out "
        "of a set for C"
    )


def _leaf_names(
    parameters: Sequence[TritonParameter], variant: SavedVariant
) -> Iterator[tuple[str, str]]:
    """Name each leaf, with the argument's name if the leaf is the whole argument."""

    def visit(name: str, argument: str, kind: Any) -> Iterator[tuple[str, str]]:
        if not isinstance(kind, tuple):
            yield name, argument
            return
        for i, item in enumerate(kind):
            yield from visit(f"{name}_{i}", "", item)

    runtime = [one.name for one in parameters if not one.is_constexpr]
    for name, kind in zip(runtime, variant.types, strict=True):
        yield from visit(name, name, kind)


def leaf_keys(types: Any, keys: Any) -> Iterator[Any]:
    """Flatten Triton's keys like the types."""
    for kind, key in zip(types, keys, strict=True):
        if isinstance(kind, tuple):
            yield from leaf_keys(kind, key)
        else:
            yield key


def rank_of(kind: str) -> int:
    """Return the rank of a tensor descriptor; 0 for anything else."""
    if not kind.startswith("tensordesc<"):
        return 0
    return kind.partition("[")[2].partition("]")[0].count(",") + 1


def element_of(kind: str) -> str:
    """Return the element type of a pointer or a tensor descriptor; "" for anything else."""
    if kind.startswith("*"):
        return kind[1:].removeprefix("k")
    return kind.partition("<")[2].partition("[")[0] if rank_of(kind) else ""
