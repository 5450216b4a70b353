"""The C code of one variant: whether it fits a call, its grid, and its launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._image import Image
from culaunch._triton.c_output.expressions import BOOL, FLOAT, INT, CannotSay, CExpressions
from culaunch._triton.c_output.parameters import C_TYPES, POINTER, leaf_keys
from culaunch._triton.expressions import constant, known_leaf, partly
from culaunch._triton.variants.constants import SavedType
from culaunch._triton.variants.parameter_sources import (
    BASE,
    FILLS_NAN,
    GLOBAL,
    PROFILE,
    ROUNDS_TO_TF32,
    SHAPE,
    STRIDE,
    TENSOR_MAP,
    VALUE,
    leaves_of,
    parameter_sources,
    size_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._triton.c_output.parameters import CParameter, CParameters
    from culaunch._triton.expressions import Expression
    from culaunch._triton.saved.set import SavedSet
    from culaunch._triton.saved.variant import SavedVariant
    from culaunch._triton.variants.launch_facts import DescriptorLayout
    from culaunch._triton.variants.parameter_sources import ParameterSource

_DIMENSIONS = "xyz"


class CVariant:
    """A block of a C function.

    Parameters
    ----------
    index : int
        The variant's place in the table.
    variant : SavedVariant
    kernels : SavedSet
    parameters : CParameters

    Raises
    ------
    ValueError
        If C cannot say a heuristic or the grid.
    """

    def __init__(
        self, index: int, variant: SavedVariant, kernels: SavedSet, parameters: CParameters
    ) -> None:
        self._index = index
        self._variant = variant
        self._kernels = kernels
        self._parameters = parameters
        self._kinds = list(leaves_of(variant.types))
        self._keys = list(leaf_keys(variant.types, variant.keys))

    @property
    def text(self) -> str:
        """The block."""
        conditions = [
            f"culaunch_device_fits(&culaunch_variants[{self._index}], culaunch_capability)",
            *self._argument_conditions(),
            f"culaunch_config_fits(config, {self._index})",
        ]
        # Compute these inside of the block, where the facts about the variant make most of them
        # constants.
        heuristics = self._heuristics()
        lines = []
        if heuristics or self._kernels.grid is not None:
            lines.append("int culaunch_failed = 0;")
        if heuristics:
            lines.append(f"const int culaunch_is_meant = {' && '.join(heuristics)};")
            lines.append("if (culaunch_failed) return CUDA_ERROR_INVALID_VALUE;")
            lines.append("if (culaunch_is_meant) {")
        lines += self._launch()
        if heuristics:
            lines.append("}")
        body = "".join(f"    {line}\n" for line in lines)
        return f"  if ({' && '.join(conditions)}) {{\n{body}  }}\n"

    # ---- whether it fits

    def _argument_conditions(self) -> Iterator[str]:
        for one in self._parameters.all:
            kind, key = self._kinds[one.leaf], self._keys[one.leaf]
            if kind == "constexpr":
                yield f"{one.name} == {0 if key is None else 1}"
            elif key == "D":
                yield f"{one.name} % 16 == 0"
            if kind == "i32" and one.type == "int64_t":
                yield f"{one.name} >= INT32_MIN && {one.name} <= INT32_MAX"

    def _heuristics(self) -> list[str]:
        made = []
        for one in self._kernels.computed:
            if one.name not in self._variant.constants:
                raise ValueError(
                    f"C cannot express the argument {one.name} of {self._kernels.name}, which a "
                    "heuristic computes at run time"
                )
            # With the variant's constants inserted, the rest depends only on the call.
            value = partly(one.value, self._known_value)
            try:
                made.append(self._expressions().equals(value, self._variant.constants[one.name]))
            except CannotSay as error:
                raise ValueError(
                    f"C cannot evaluate the heuristic {one.name} = {one.value} of "
                    f"{self._kernels.name}: {error}"
                ) from None
        return [one for one in made if one != "1"]

    # ---- known facts about its arguments

    def _known_value(self, op: str, name: str) -> Expression | None:
        constants = self._variant.constants
        if name in constants:
            return known_leaf(op, constants[name])
        one = self._argument(name)
        if one is None:
            return None
        kind, key = self._kinds[one.leaf], self._keys[one.leaf]
        if op == "is_array":
            return constant(kind.startswith("*"))
        if kind == "constexpr":
            return {"value": constant(key), "is_none": constant(key is None)}.get(op)
        if op == "is_none" and not kind.startswith("*"):
            return constant(False)
        if op == "dtype" and kind.startswith("*"):
            return constant(SavedType(kind[1:].removeprefix("k")))
        return None

    def _argument(self, name: str) -> CParameter | None:
        return next((one for one in self._parameters.all if one.argument == name), None)

    def _expressions(self) -> CExpressions:
        values: dict[str, tuple[str, str]] = {}
        pointers: dict[str, str] = {}
        for one in self._parameters.all:
            kind = self._kinds[one.leaf]
            if kind.startswith("*"):
                pointers[one.argument] = one.name
            elif kind in ("u1", "i1"):
                values[one.argument] = BOOL, f"({one.name} != 0)"
            elif kind in ("fp32", "f32", "fp64"):
                values[one.argument] = FLOAT, f"(double){one.name}"
            elif kind == "u64":
                values[one.argument] = INT, f"culaunch_unsigned({one.name}, &culaunch_failed)"
            elif kind[0] in "iu":
                values[one.argument] = INT, f"(int64_t){one.name}"
        return CExpressions(values, pointers)

    # ---- its launch

    def _launch(self) -> list[str]:
        lines = self._grid()
        pointers = []
        for source in self._sources():
            if source.part == VALUE:
                pointers.append(self._value(source, lines))
            elif source.part == TENSOR_MAP:
                pointers.append(self._tensor_map(source, lines))
            else:
                pointers.append(self._part(source))
        lines.append("CUdeviceptr culaunch_scratch[2] = {0, 0};")
        lines.append(f"void *culaunch_arguments[] = {{{', '.join(pointers) or 'NULL'}}};")
        x, y, z = (
            f"grid_{one}" if self._kernels.grid is None else f"culaunch_{one}"
            for one in _DIMENSIONS
        )
        for one in self._parameters.all:
            if one.bytes:
                cleared = f"culaunch_cleared_{one.leaf}"
                lines.append(
                    f"const CUresult {cleared} = culaunch_clear(&culaunch_variants[{self._index}], "
                    f"stream, {x}, {y}, {z}, {one.name}, {one.bytes});"
                )
                lines.append(f"if ({cleared} != CUDA_SUCCESS) return {cleared};")
        lines.append(
            f"return culaunch_launch(&culaunch_variants[{self._index}], culaunch_device, stream, "
            f"{x}, {y}, {z}, culaunch_arguments, culaunch_scratch);"
        )
        return lines

    def _grid(self) -> list[str]:
        if self._kernels.grid is None:
            return []
        sizes = (*self._kernels.grid, *[constant(1)] * (3 - len(self._kernels.grid)))
        lines, checks = [], []
        for name, size in zip(_DIMENSIONS, sizes, strict=True):
            try:
                text = self._expressions().number(partly(size, self._known_value))
            except CannotSay as error:
                raise ValueError(
                    f"C cannot evaluate the grid of {self._kernels.name}: {error}"
                ) from None
            lines.append(f"const int64_t culaunch_size_{name} = {text};")
            checks.append(f"culaunch_size_{name} < 0 || culaunch_size_{name} > INT32_MAX")
        lines.append(
            f"if (culaunch_failed || {' || '.join(checks)}) return CUDA_ERROR_INVALID_VALUE;"
        )
        return lines + [
            f"const unsigned culaunch_{one} = (unsigned)culaunch_size_{one};" for one in _DIMENSIONS
        ]

    def _sources(self) -> tuple[ParameterSource, ...]:
        variant = self._variant
        # Folded arguments are not parameters of the compiled kernel.
        kinds = [kind for kind in self._kinds if kind != "constexpr"]
        if any(kind.startswith("tensordesc<") for kind in kinds):
            # The parts of a descriptor depend on Triton's version, so the image decides.
            member = variant.image or variant.ptx
            assert member is not None
            found = [
                one for one in Image(self._kernels.read(member)).kernels
                if one.name == variant.facts.name
            ]  # fmt: skip
            if not found:
                raise ValueError(f"the image has no kernel {variant.facts.name!r:.80}")
            layout = [(one.offset, one.size) for one in found[0].parameters]
        else:  # checked when the variant was made
            sizes = [*map(size_of, kinds), *[8] * variant.facts.hidden]
            layout = [(0, size) for size in sizes]
        return parameter_sources(variant.types, variant.facts, layout)

    def _value(self, source: ParameterSource, lines: list[str]) -> str:
        one = self._parameters.by_leaf[source.leaf]
        # The driver reads the image's parameter size from an address, and the C parameter may be
        # wider.
        exact = C_TYPES.get(source.type, POINTER)
        if exact == one.type:
            return f"&{one.name}"
        place = f"culaunch_{source.leaf}"
        lines.append(f"{exact} {place} = ({exact}){one.name};")
        return f"&{place}"

    def _tensor_map(self, source: ParameterSource, lines: list[str]) -> str:
        name = self._parameters.by_leaf[source.leaf].name
        layout = self._variant.facts.descriptors[source.index]
        number = source.index
        place, encoded = f"culaunch_map_{number}", f"culaunch_encoded_{number}"
        call = f"culaunch_encode(&{place}, &culaunch_layout_{number}, {name})"
        lines += [
            f"static const culaunch_layout culaunch_layout_{number} = {_layout(layout)};",
            f"CUtensorMap {place};",
            f"const CUresult {encoded} = {call};",
            f"if ({encoded} != CUDA_SUCCESS) return {encoded};",
        ]
        return f"&{place}"

    def _part(self, source: ParameterSource) -> str:
        if source.part in (GLOBAL, PROFILE):
            return f"&culaunch_scratch[{0 if source.part == GLOBAL else 1}]"
        name = self._parameters.by_leaf[source.leaf].name
        member = {
            BASE: "data", SHAPE: f"shape[{source.index}]", STRIDE: f"strides[{source.index}]",
            FILLS_NAN: "fills_nan", ROUNDS_TO_TF32: "rounds_to_tf32",
        }[source.part]  # fmt: skip
        # The driver copies from this address. A 32-bit size is the lower half.
        return f"(void *)(uintptr_t)&{name}->{member}"


def _layout(one: DescriptorLayout) -> str:
    box = ", ".join(map(str, one.block_size))
    return (
        f"{{{len(one.block_size)}, {one.swizzle}, {one.elem_size}, {one.driver_type}, "
        f"{int(one.fp4_padded)}, {{{box}}}}}"
    )
