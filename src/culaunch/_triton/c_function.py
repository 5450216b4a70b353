"""One C function: the variants of a set that have the same element types, and how it chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._triton.c_names import NameSpace
from culaunch._triton.c_values import c_value
from culaunch._triton.checks import ARCH
from culaunch._triton.parameter_sources import (
    GLOBAL,
    PROFILE,
    VALUE,
    leaves_of,
    parameter_sources,
    size_of,
)
from culaunch._triton.select import setting_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from culaunch._triton.parameters import TritonParameter
    from culaunch._triton.saved_variant import SavedVariant

_C_TYPES = {
    "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "u1": "uint8_t",
    "i1": "uint8_t", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
    "fp16": "uint16_t", "bf16": "uint16_t", "fp32": "float", "f32": "float", "fp64": "double",
}  # fmt: skip


@dataclass(frozen=True)
class CParameter:
    """A parameter of the C function: a leaf of the kernel's arguments."""

    name: str
    type: str
    leaf: int


class CFunction:
    """The C function for the variants of one list of element types.

    Parameters
    ----------
    name : str
        Its name in C.
    config : str
        The name of the structure of constants.
    fields : mapping of str to str
        The constants and options that the variants differ in, and their names in C.
    needs_config : bool
        Whether a call must say them.
    parameters : sequence of TritonParameter
    variants : sequence of (int, SavedVariant)
        With their places in the table of variants.
    taken : iterable of str
        Names that the header has as macros.

    Raises
    ------
    ValueError
        If C cannot say the type of an argument.
    """

    def __init__(
        self,
        name: str,
        config: str,
        fields: Mapping[str, str],
        needs_config: bool,
        parameters: Sequence[TritonParameter],
        variants: Sequence[tuple[int, SavedVariant]],
        taken: Iterable[str],
    ) -> None:
        self.name = name
        self.variants = variants
        self._config = config
        self._fields = fields
        self._needs_config = needs_config
        names = NameSpace(taken)
        kinds = [list(leaves_of(variant.types)) for _, variant in variants]
        self.parameters = []
        for leaf, python_name in enumerate(_leaf_names(parameters, variants[0][1])):
            found = {kind[leaf] for kind in kinds} - {"constexpr"}
            if found:
                kind = _c_type(found, python_name)
                self.parameters.append(CParameter(names.add(python_name), kind, leaf))

    @property
    def declaration(self) -> str:
        """Its declaration, without the semicolon."""
        listed = [
            "CUstream stream", "unsigned grid_x", "unsigned grid_y", "unsigned grid_z",
            *([f"const {self._config} *config"] if self._fields else []),
            *(f"{one.type} {one.name}" for one in self.parameters),
        ]  # fmt: skip
        return f"CUresult {self.name}({', '.join(listed)})"

    @property
    def body(self) -> str:
        """Its definition."""
        blocks = []
        # The most specialised first, as the Python dispatch prefers them.
        for index, variant in sorted(self.variants, key=lambda pair: -_score(pair[1])):
            conditions = [
                f"culaunch_device_fits(&culaunch_variants[{index}], culaunch_capability)",
                *_argument_conditions(self.parameters, variant),
                *(
                    f"(!config || config->{field} == {c_value(setting_of(variant, name))})"
                    for name, field in self._fields.items()
                ),
            ]
            blocks.append(
                f"  if ({' && '.join(conditions)}) {{\n"
                f"{_launch(index, variant, self.parameters)}\n  }}\n"
            )
        unused = "".join(f"  (void){one.name};\n" for one in self.parameters)
        if self._needs_config:
            unused += "  if (!config) return CUDA_ERROR_INVALID_VALUE;\n"
        return (
            f"{self.declaration} {{\n"
            "  int culaunch_device = 0, culaunch_capability = 0;\n"
            "  const CUresult culaunch_code = culaunch_find_device(&culaunch_device, "
            "&culaunch_capability);\n"
            "  if (culaunch_code != CUDA_SUCCESS) return culaunch_code;\n"
            "  if (grid_x == 0 || grid_y == 0 || grid_z == 0) return CUDA_SUCCESS;\n"
            f"{unused}{''.join(blocks)}"
            "  return culaunch_any_fits(culaunch_capability) ? CUDA_ERROR_INVALID_VALUE\n"
            "                                                : CUDA_ERROR_NO_BINARY_FOR_GPU;\n}\n"
        )


def _launch(index: int, variant: SavedVariant, parameters: Sequence[CParameter]) -> str:
    by_leaf = {one.leaf: one for one in parameters}
    lines, pointers = [], []
    for source in parameter_sources(variant.types, variant.facts, _expected_layout(variant)):
        if source.part == VALUE:
            one = by_leaf[source.leaf]
            exact = _C_TYPES.get(source.type, "CUdeviceptr")
            if exact == one.type:
                pointers.append(f"&{one.name}")
            else:
                place = f"culaunch_{source.leaf}"
                lines.append(f"    {exact} {place} = ({exact}){one.name};")
                pointers.append(f"&{place}")
        else:
            assert source.part in (GLOBAL, PROFILE)
            pointers.append(f"&culaunch_scratch[{0 if source.part == GLOBAL else 1}]")
    lines.append("    CUdeviceptr culaunch_scratch[2] = {0, 0};")
    lines.append(f"    void *culaunch_arguments[] = {{{', '.join(pointers) or 'NULL'}}};")
    lines.append(
        f"    return culaunch_launch(&culaunch_variants[{index}], culaunch_device, stream, grid_x, "
        "grid_y, grid_z,\n                           culaunch_arguments, culaunch_scratch);"
    )
    return "\n".join(lines)


def _expected_layout(variant: SavedVariant) -> list[tuple[int, int]]:
    """Return the sizes that the facts say; they were checked when the variant was made."""
    sizes = [size_of(kind) for kind in leaves_of(variant.types) if kind != "constexpr"]
    return [(0, size) for size in [*sizes, *[8] * variant.facts.hidden]]


def _argument_conditions(parameters: Sequence[CParameter], variant: SavedVariant) -> list[str]:
    kinds = list(leaves_of(variant.types))
    keys = list(_leaf_keys(variant.types, variant.keys))
    found = []
    for one in parameters:
        kind, key = kinds[one.leaf], keys[one.leaf]
        if kind == "constexpr":
            found.append(f"{one.name} == {0 if key is None else 1}")
        elif key == "D":
            found.append(f"{one.name} % 16 == 0")
        if kind == "i32" and one.type == "int64_t":
            found.append(f"{one.name} >= INT32_MIN && {one.name} <= INT32_MAX")
    return found


def _c_type(kinds: set[str], name: str) -> str:
    if all(kind.startswith("*") for kind in kinds):
        return "CUdeviceptr"
    types = {_C_TYPES.get(kind, "") for kind in kinds}
    if types == {"int32_t", "int64_t"}:
        return "int64_t"
    if len(types) > 1 or "" in types:
        raise ValueError(
            f"C cannot say argument {name} of type {', '.join(sorted(kinds))}: leave such variants "
            "out of a set for C"
        )
    return next(iter(types))


def _leaf_names(parameters: Sequence[TritonParameter], variant: SavedVariant) -> list[str]:
    names: list[str] = []

    def visit(name: str, kind: Any) -> None:
        if isinstance(kind, tuple):
            for i, item in enumerate(kind):
                visit(f"{name}_{i}", item)
        else:
            names.append(name)

    runtime = [one.name for one in parameters if not one.is_constexpr]
    for name, kind in zip(runtime, variant.types, strict=True):
        visit(name, kind)
    return names


def _leaf_keys(types: Any, keys: Any) -> Iterator[Any]:
    for kind, key in zip(types, keys, strict=True):
        if isinstance(kind, tuple):
            yield from _leaf_keys(kind, key)
        else:
            yield key


def _score(variant: SavedVariant) -> int:
    keys = list(_leaf_keys(variant.types, variant.keys))
    kinds = list(leaves_of(variant.types))
    score = sum(
        2 if kind == "constexpr" else key == "D" for kind, key in zip(kinds, keys, strict=True)
    )
    match = ARCH.fullmatch(variant.arch)
    assert match is not None
    nearness = 10 * int(match[2]) + int(match[3]) + (1000 if match[1] == "sm" else 0)
    return score * 10_000 + nearness
