"""A saved set as C: a header and a source with the images in it, which need the driver alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_path
from culaunch._base.data_files import data_text
from culaunch._base.outputs import write_output
from culaunch._triton.c_function import CFunction
from culaunch._triton.c_names import NameSpace, c_identifier, c_include, c_string, check_c_name
from culaunch._triton.c_tuned import CChoice
from culaunch._triton.c_values import c_macro_value, check_distinct
from culaunch._triton.checks import ARCH
from culaunch._triton.parameter_sources import leaves_of
from culaunch._triton.select import setting_of

if TYPE_CHECKING:
    import os

    from culaunch._triton.saved_set import SavedSet
    from culaunch._triton.saved_variant import SavedVariant


def write_c(
    kernels: SavedSet, path: str | os.PathLike[str], name: str | None = None
) -> tuple[Path, Path]:
    """Write a source and a header; return both paths. See :meth:`KernelSet.write_c`."""
    text = checked_path("path", path)
    if text.endswith((".h", "/")):
        raise ValueError(
            f"write_c takes the path of the source, such as scale.c (got {text!r:.200})"
        )
    base = text.removesuffix(".c")
    source, header = Path(f"{base}.c"), Path(f"{base}.h")
    output = _COutput(kernels, check_c_name(name) if name is not None else None)
    pieces = output.header(), output.source(header.name)
    for target, piece in zip((header, source), pieces, strict=True):
        write_output(str(target), piece.encode())
    return source, header


class _COutput:
    """The names, functions and texts of one set in C."""

    def __init__(self, kernels: SavedSet, name: str | None) -> None:
        if kernels.zeroes:
            raise ValueError(
                f"{kernels.name} sets {', '.join(kernels.zeroes)} to zero before each launch, and "
                "C does not know how large that is: compile the kernel below the autotuner (.fn) "
                "with configs=[...], and clear it before each launch"
            )
        self.kernels = kernels
        self.name = name or c_identifier(kernels.name, is_function=True)
        self.config = f"{self.name}_config"
        varying = _varying(kernels)
        self.macros = self._macros(varying)
        scope = NameSpace(self.macros)
        self.fields = {one: scope.add(one) for one in varying}
        for one in varying:
            check_distinct(one, [setting_of(variant, one) for variant in kernels.variants])
        groups = _by_types(kernels)
        self.functions = [
            CFunction(
                self._function_name(types, groups), self.config, self.fields,
                bool(kernels.from_heuristics), kernels.parameters, variants, self.macros,
            )
            for types, variants in groups.items()
        ]  # fmt: skip
        table = kernels.table
        if table is not None and not varying:
            raise ValueError(
                "the tuning table names one configuration alone: compile without autotuning"
            )
        self.choices: list[CChoice] = []
        if table is not None:
            self.choices = [
                CChoice(table, one, self.config, self.fields, self.macros) for one in self.functions
            ]

    def header(self) -> str:
        """Return the text of the header."""
        guard = f"CULAUNCH_TRITON_{self.name}"
        parts = [
            f"/* {self.name}: Triton kernels, compiled by culaunch. Link with -lcuda -lm. */",
            f"#ifndef {guard}\n#define {guard}\n",
            "#include <cuda.h>\n#include <stdint.h>\n",
            '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        ]
        parts += [f"#define {macro} {value}" for macro, value in self.macros.items()]
        if self.fields:
            fields = "".join(f"  int64_t {field};\n" for field in self.fields.values())
            parts.append(
                "\n/* What the variants differ in; -1 stands for None. */\n"
                f"typedef struct {{\n{fields}}} {self.config};\n"
            )
        if self.choices:
            unsaid = ""
            if self.kernels.from_heuristics:
                unsaid = f"\n * It does not say {self._heuristics()}: copy it and set that."
            parts.append(
                "/* The configuration that was tuned for these values and the function's element\n"
                " * types, or for the nearest ones, on the current device's architecture."
                f"{unsaid} */"
            )
            parts += [f"{one.declaration};" for one in self.choices]
        parts.append(
            "/* Launch on the current context's device. An empty grid launches nothing. Gives the\n"
            " * driver's code; CUDA_ERROR_NO_BINARY_FOR_GPU if no variant is for this device, and\n"
            " * CUDA_ERROR_INVALID_VALUE if none fits the arguments" + self._about_config() + ". */"
        )
        parts += [f"{one.declaration};" for one in self.functions]
        parts.append("\n#ifdef __cplusplus\n}\n#endif\n#endif")
        return "\n".join(parts) + "\n"

    def source(self, header: str) -> str:
        """Return the text of the source."""
        images: dict[str, str] = {}
        arrays, rows = [], []
        for variant in self.kernels.variants:
            member = variant.image or variant.ptx
            assert member is not None
            if member not in images:
                images[member] = f"culaunch_image_{len(images)}"
                arrays.append(_array(images[member], self.kernels.read(member)))
            rows.append(_row(variant, images[member]))
        return "\n".join(
            [
                c_include(header) + "\n",
                data_text(__name__, "c/variant.c") + "\n",
                *arrays,
                f"#define CULAUNCH_VARIANTS {len(rows)}\n"
                "static culaunch_variant culaunch_variants[] = {\n" + "\n".join(rows) + "\n};\n",
                "\n" + data_text(__name__, "c/launch.c"),
                *(["\n" + data_text(__name__, "c/choose.c")] if self.choices else ()),
                *(one.body for one in self.choices),
                *(one.body for one in self.functions),
            ]
        )

    def _macros(self, varying: list[str]) -> dict[str, str]:
        """Return the constants that are the same in all variants, as macros."""
        made = {}
        for key, value in self.kernels.variants[0].constants.items():
            if key in varying or type(value) not in (int, bool):
                continue
            text = c_macro_value(value)
            if text is not None:
                made[c_identifier(f"{self.name.upper()}_{key}")] = text
        return made

    def _function_name(
        self, types: tuple[str, ...], groups: dict[tuple[str, ...], list[tuple[int, SavedVariant]]]
    ) -> str:
        if len(groups) == 1:
            return self.name
        same = all(len(set(one)) == 1 for one in groups)
        return "_".join([self.name, *(types[:1] if same else types)])

    def _about_config(self) -> str:
        if not self.fields:
            return ""
        if self.kernels.from_heuristics:
            return f" and the\n * configuration, which must say {self._heuristics()}"
        return " and the\n * configuration (NULL: any; the most specialised variant is taken)"

    def _heuristics(self) -> str:
        return ", ".join(
            self.fields[one] for one in self.kernels.from_heuristics if one in self.fields
        )


def _varying(kernels: SavedSet) -> list[str]:
    """Name the constants and options that are not the same in all variants.

    What a heuristic gave is never left to chance: it is named even where it is the same.
    """
    names = dict.fromkeys(
        name for one in kernels.variants for name in (*one.constants, *one.options)
    )
    return [
        name
        for name in names
        if name in kernels.from_heuristics
        or len({repr(setting_of(one, name)) for one in kernels.variants}) > 1
    ]


def _by_types(kernels: SavedSet) -> dict[tuple[str, ...], list[tuple[int, SavedVariant]]]:
    """Group the variants by the element types of their pointers: C's addresses have none."""
    if len({_shape(one.types) for one in kernels.variants}) > 1:
        raise ValueError(
            "C cannot say an argument that is a tuple in one variant and something else, or a "
            "tuple of another length, in another: make one set for each"
        )
    # A parameter that is folded in one variant has the type that it has in the others.
    lists = [
        [
            kind[1:].removeprefix("k") if kind.startswith("*") else ""
            for kind in leaves_of(one.types)
        ]
        for one in kernels.variants
    ]
    columns = list(zip(*lists, strict=True))
    varying = [len(set(column) - {""}) > 1 for column in columns]
    groups: dict[tuple[str, ...], list[tuple[int, SavedVariant]]] = {}
    for index, (variant, elements) in enumerate(zip(kernels.variants, lists, strict=True)):
        key = tuple(one or "none" for one, varies in zip(elements, varying, strict=True) if varies)
        groups.setdefault(key, []).append((index, variant))
    return groups


def _shape(types: object) -> tuple[Any, ...]:
    """Return where there are tuples among types, and of how many."""
    return tuple(map(_shape, types)) if isinstance(types, tuple) else ()


def _row(variant: SavedVariant, image: str) -> str:
    match = ARCH.fullmatch(variant.arch)
    if match is None:
        raise ValueError(f"the architecture {variant.arch!r:.60} is not known")
    rule = "A" if match[4] == "a" else "M" if match[1] == "sm" or match[4] == "f" else "P"
    facts = variant.facts
    return (
        f"    {{{image}, {c_string(facts.name)}, {10 * int(match[2]) + int(match[3])}, "
        f"'{rule}', {32 * facts.num_warps}, {facts.num_ctas}, {facts.shared}, "
        f"{facts.global_scratch_size}, {facts.profile_scratch_size}, "
        f"{int(facts.launch_cooperative_grid)}, {int(facts.launch_pdl)}, NULL, NULL, 0}},"
    )


def _array(name: str, data: bytes) -> str:
    # A terminating zero: PTX is a string to the driver.
    numbers = [str(byte) for byte in (*data, 0)]
    lines = [",".join(numbers[i : i + 40]) for i in range(0, len(numbers), 40)]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"
