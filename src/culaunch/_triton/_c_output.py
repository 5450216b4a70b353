"""A saved set as C: a header and a source with the images in it, which need the driver alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culaunch._base.outputs import write_output
from culaunch._triton._c_runtime import RUNTIME
from culaunch._triton._layout import GLOBAL, PROFILE, VALUE, leaves_of

if TYPE_CHECKING:
    import os

    from culaunch._triton._saved import SavedVariant
    from culaunch._triton._set import KernelSet

_C_TYPES = {
    "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "u1": "uint8_t",
    "i1": "uint8_t", "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
    "fp16": "uint16_t", "bf16": "uint16_t", "fp32": "float", "fp64": "double",
}  # fmt: skip
_ARCH = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")


@dataclass(frozen=True)
class CParameter:
    """A parameter of the C function: a leaf of the kernel's arguments."""

    name: str
    type: str
    leaf: int


def write_c(kernels: KernelSet, path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Write ``path`` with ``.c`` and ``.h``; returns both.

    Raises
    ------
    ValueError
        If the set has what C cannot say: tensor descriptors among the arguments.
    """
    source = Path(path).with_suffix(".c")
    header = source.with_suffix(".h")
    groups = _by_types(kernels)
    constants = _varying(kernels)
    functions = [
        _Function(kernels, _function_name(kernels, types, groups), variants, constants)
        for types, variants in groups.items()
    ]
    write_output(str(header), _header(kernels, functions, constants, header.name).encode())
    write_output(str(source), _source(kernels, functions, constants, header.name).encode())
    return source, header


class _Function:
    """The C function for the variants of one list of element types."""

    def __init__(
        self,
        kernels: KernelSet,
        name: str,
        variants: list[tuple[int, SavedVariant]],
        constants: list[str],
    ) -> None:
        self.name = name
        self.variants = variants
        self.constants = constants
        names = _leaf_names(kernels, variants[0][1])
        kinds = [list(leaves_of(variant.types)) for _, variant in variants]
        self.parameters = []
        for leaf, leaf_name in enumerate(names):
            found = {kind[leaf] for kind in kinds} - {"constexpr"}
            if found:
                self.parameters.append(CParameter(leaf_name, _c_type(found, leaf_name), leaf))

    def declaration(self, kernels: KernelSet) -> str:
        config = [f"const {kernels.name}_config *config"] if self.constants else []
        listed = [
            "CUstream stream", "unsigned grid_x", "unsigned grid_y", "unsigned grid_z", *config,
            *(f"{one.type} {one.name}" for one in self.parameters),
        ]  # fmt: skip
        return f"CUresult {self.name}({', '.join(listed)})"

    def body(self, kernels: KernelSet) -> str:
        blocks = []
        # The most specialised first, as the Python dispatch prefers them.
        for index, variant in sorted(self.variants, key=lambda pair: -_score(pair[1])):
            conditions = [f"device_fits(&variants[{index}], capability)"]
            conditions += _argument_conditions(self.parameters, variant)
            conditions += [
                f"(!config || config->{_c_name(name)} == {_c_value(_setting(variant, name))})"
                for name in self.constants
            ]
            blocks.append(
                f"  if ({' && '.join(conditions)}) {{\n"
                f"{_launch(index, variant, self.parameters)}\n  }}"
            )
        unused = "".join(f"  (void){one.name};\n" for one in self.parameters)
        return (
            f"{self.declaration(kernels)} {{\n"
            "  int device = 0, capability = 0;\n"
            "  CUresult code = find_device(&device, &capability);\n"
            "  if (code != CUDA_SUCCESS) return code;\n"
            "  if (grid_x == 0 || grid_y == 0 || grid_z == 0) return CUDA_SUCCESS;\n"
            f"{unused}" + "\n".join(blocks) + "\n"
            "  return any_fits(capability) ? CUDA_ERROR_INVALID_VALUE\n"
            "                              : CUDA_ERROR_NO_BINARY_FOR_GPU;\n}\n"
        )


def _launch(index: int, variant: SavedVariant, parameters: list[CParameter]) -> str:
    from culaunch._triton._layout import make_sources

    by_leaf = {one.leaf: one for one in parameters}
    sources = make_sources(variant.types, variant.facts, _expected_layout(variant))
    lines, pointers = [], []
    for source in sources:
        if source.part == VALUE:
            one = by_leaf[source.leaf]
            exact = _C_TYPES.get(source.type, "CUdeviceptr")
            if exact == one.type:
                pointers.append(f"&{one.name}")
            else:
                lines.append(f"    {exact} {one.name}_ = ({exact}){one.name};")
                pointers.append(f"&{one.name}_")
        else:
            assert source.part in (GLOBAL, PROFILE)
            pointers.append("&scratch[0]" if source.part == GLOBAL else "&scratch[1]")
    lines.append("    CUdeviceptr scratch[2] = {0, 0};")
    listed = ", ".join(pointers) or "NULL"
    lines.append(f"    void *arguments[] = {{{listed}}};")
    lines.append(
        f"    return launch(&variants[{index}], device, stream, grid_x, grid_y, grid_z, arguments, "
        "scratch);"
    )
    return "\n".join(lines)


def _expected_layout(variant: SavedVariant) -> list[tuple[int, int]]:
    """Give the sizes that the facts say; they were checked when the variant was made."""
    from culaunch._triton._layout import size_of

    sizes = [size_of(kind) for kind in leaves_of(variant.types) if kind != "constexpr"]
    return [(0, size) for size in [*sizes, *[8] * variant.facts.hidden]]


def _argument_conditions(parameters: list[CParameter], variant: SavedVariant) -> list[str]:
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
    if kinds == {"i32", "i64"}:
        return "int64_t"
    kind = next(iter(kinds))
    if len(kinds) > 1 or kind not in _C_TYPES:
        raise ValueError(
            f"C cannot say argument {name} of type {', '.join(sorted(kinds))}: leave such variants "
            "out of a set for C"
        )
    return _C_TYPES[kind]


def _by_types(kernels: KernelSet) -> dict[tuple[str, ...], list[tuple[int, SavedVariant]]]:
    """Group the variants by the element types of their pointers: C's addresses have none."""
    # A parameter that is folded in one variant has the type that it has in the others.
    columns = list(zip(*(leaves_of(one.types) for one in kernels.variants), strict=True))
    varying = [len({kind for kind in column if kind.startswith("*")}) > 1 for column in columns]
    groups: dict[tuple[str, ...], list[tuple[int, SavedVariant]]] = {}
    for index, variant in enumerate(kernels.variants):
        kinds = leaves_of(variant.types)
        key = tuple(kind for kind, varies in zip(kinds, varying, strict=True) if varies)
        groups.setdefault(key, []).append((index, variant))
    return groups


def _function_name(
    kernels: KernelSet, types: tuple[str, ...], groups: dict[tuple[str, ...], Any]
) -> str:
    if len(groups) == 1:
        return kernels.name
    words = [kind.lstrip("*k") for kind in types]
    same = len(set(words)) == 1 and all(len(set(one)) == 1 for one in groups)
    return "_".join([kernels.name, *(words[:1] if same else words)])


def _leaf_names(kernels: KernelSet, variant: SavedVariant) -> list[str]:
    runtime = [one.name for one in kernels.parameters if not one.is_constexpr]
    names: list[str] = []

    def visit(name: str, kind: Any) -> None:
        if isinstance(kind, tuple):
            for i, item in enumerate(kind):
                visit(f"{name}_{i}", item)
        else:
            names.append(_c_name(name))

    for name, kind in zip(runtime, variant.types, strict=True):
        visit(name, kind)
    return names


def _leaf_keys(types: Any, keys: Any) -> Any:
    for kind, key in zip(types, keys, strict=True):
        if isinstance(kind, tuple):
            yield from _leaf_keys(kind, key)
        else:
            yield key


def _varying(kernels: KernelSet) -> list[str]:
    """Name the constants and options that are not the same in all variants."""
    names = dict.fromkeys(
        name for one in kernels.variants for name in (*one.constants, *one.options)
    )
    return [
        name for name in names if len({repr(_setting(one, name)) for one in kernels.variants}) > 1
    ]


def _setting(variant: SavedVariant, name: str) -> Any:
    if name in variant.constants:
        return variant.constants[name]
    return variant.options.get(name, getattr(variant.facts, name, None))


def _c_value(value: Any) -> str:
    if value is None:
        return "-1"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return f"INT64_C({value})"
    raise ValueError(
        f"C cannot choose by a constant of type {type(value).__name__}: make one set for each value"
    )


def _c_name(name: str) -> str:
    reserved = {"int", "char", "long", "float", "double", "short", "register", "signed", "unsigned",
                "auto", "const", "static", "void", "volatile", "default", "switch", "case", "do",
                "stream", "grid_x", "grid_y", "grid_z", "config", "device", "capability", "code",
                "scratch", "arguments", "variants", "launch"}  # fmt: skip
    return f"{name}_arg" if name in reserved else name


def _score(variant: SavedVariant) -> int:
    keys = list(_leaf_keys(variant.types, variant.keys))
    kinds = list(leaves_of(variant.types))
    score = sum(
        2 if kind == "constexpr" else key == "D" for kind, key in zip(kinds, keys, strict=True)
    )
    match = _ARCH.fullmatch(variant.arch)
    assert match is not None
    nearness = 10 * int(match[2]) + int(match[3]) + (1000 if match[1] == "sm" else 0)
    return score * 10_000 + nearness


def _header(kernels: KernelSet, functions: list[_Function], constants: list[str], file: str) -> str:
    guard = re.sub(r"\W", "_", file).upper() + "_"
    name = kernels.name
    parts = [
        f"/* {name}: Triton kernels compiled ahead of time by culaunch. Link with -lcuda -lm. */",
        f"#ifndef {guard}\n#define {guard}\n",
        "#include <cuda.h>\n#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
    ]
    for key, value in kernels.variants[0].constants.items():
        if key not in constants and type(value) in (int, bool):
            parts.append(f"#define {name.upper()}_{key} {int(value)}")
    if constants:
        fields = "".join(f"  int64_t {_c_name(key)};\n" for key in constants)
        parts.append(
            f"\n/* What the variants differ in; -1 stands for None. */\n"
            f"typedef struct {{\n{fields}}} {name}_config;\n"
        )
    if kernels.table is not None:
        parts.append(
            "/* The configuration that was tuned for these values, or for the nearest ones. */\n"
            f"{_choose_declaration(kernels)};\n"
        )
    parts.append(
        "/* Launch on the current context's device. An empty grid launches nothing. Gives the\n"
        " * driver's code; CUDA_ERROR_NO_BINARY_FOR_GPU if no variant is for this device, and\n"
        " * CUDA_ERROR_INVALID_VALUE if none fits the arguments"
        + (" and the configuration (NULL: any)" if constants else "")
        + ". */"
    )
    parts += [f"{one.declaration(kernels)};" for one in functions]
    parts.append("\n#ifdef __cplusplus\n}\n#endif\n#endif")
    return "\n".join(parts) + "\n"


def _choose_declaration(kernels: KernelSet) -> str:
    assert kernels.table is not None
    listed = ", ".join(f"int64_t {_c_name(key)}" for key in kernels.table.key) or "void"
    return f"const {kernels.name}_config *{kernels.name}_choose({listed})"


def _choose(kernels: KernelSet, constants: list[str]) -> str:
    table = kernels.table
    if table is None:
        return ""
    if not constants:
        raise ValueError("the tuning table names one configuration alone: save without it")
    rows = []
    for entry in table.entries:
        chosen = {**entry.constants, **entry.options}
        values = ", ".join(_c_value(value) for value in entry.values)
        config = ", ".join(_c_value(chosen.get(key)) for key in constants)
        rows.append(f"    {{{{{values}}}, {{{config}}}}},")
    count = len(table.key)
    given = ", ".join(_c_name(key) for key in table.key)
    return (
        "#include <math.h>\n\n"
        f"static const struct {{\n  int64_t values[{count}];\n  {kernels.name}_config config;\n"
        f"}} tuned[] = {{\n" + "\n".join(rows) + "\n};\n\n"
        f"{_choose_declaration(kernels)} {{\n"
        f"  const int64_t given[{count}] = {{{given}}};\n"
        "  size_t best = 0;\n  double least = INFINITY;\n"
        "  for (size_t i = 0; i < sizeof tuned / sizeof tuned[0]; ++i) {\n"
        "    double distance = 0;\n"
        f"    for (int k = 0; k < {count}; ++k) {{\n"
        "      if (given[k] >= 0 && tuned[i].values[k] >= 0)\n"
        "        distance += fabs(log2((double)tuned[i].values[k] + 1) - "
        "log2((double)given[k] + 1));\n"
        "      else if (given[k] != tuned[i].values[k])\n        distance += 1e3;\n    }\n"
        "    if (distance < least) least = distance, best = i;\n  }\n"
        "  return &tuned[best].config;\n}\n"
    )


def _source(
    kernels: KernelSet, functions: list[_Function], constants: list[str], header: str
) -> str:
    images: dict[str, str] = {}
    arrays, rows = [], []
    for variant in kernels.variants:
        member = variant.image or variant.ptx
        assert member is not None
        if member not in images:
            images[member] = f"image_{len(images)}"
            arrays.append(_array(images[member], kernels.read(member)))
        match = _ARCH.fullmatch(variant.arch)
        if match is None:
            raise ValueError(f"the architecture {variant.arch} is not known")
        rule = "A" if match[4] == "a" else "M" if match[1] == "sm" or match[4] == "f" else "P"
        facts = variant.facts
        rows.append(
            f'    {{{images[member]}, "{facts.name}", {10 * int(match[2]) + int(match[3])}, '
            f"'{rule}', {32 * facts.num_warps}, {facts.num_ctas}, {facts.shared}, "
            f"{facts.global_scratch_size}, {facts.profile_scratch_size}, "
            f"{int(facts.launch_cooperative_grid)}, {int(facts.launch_pdl)}, NULL, NULL, 0}},"
        )
    table = "static Variant variants[] = {\n" + "\n".join(rows) + "\n};\n"
    count = f"#define VARIANTS {len(kernels.variants)}\n"
    before, after = RUNTIME.split("/* the table */")
    return "\n".join(
        [
            f'#include "{header}"\n',
            before,
            *arrays,
            count + table,
            after,
            _choose(kernels, constants),
            *(one.body(kernels) for one in functions),
        ]
    )


def _array(name: str, data: bytes) -> str:
    # A terminating zero: PTX is a string to the driver.
    numbers = [str(byte) for byte in (*data, 0)]
    lines = [",".join(numbers[i : i + 40]) for i in range(0, len(numbers), 40)]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"
