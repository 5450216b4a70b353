"""A saved set in C: its names, its functions and its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.data_files import data_text
from culaunch._triton.c_output.configs import CConfigs
from culaunch._triton.c_output.default import CDefault
from culaunch._triton.c_output.expressions import arithmetic_used
from culaunch._triton.c_output.function import CFunction
from culaunch._triton.c_output.groups import group_by_types
from culaunch._triton.c_output.images import CImages
from culaunch._triton.c_output.names import c_identifier, c_include
from culaunch._triton.c_output.tuned import CChoice
from culaunch._triton.c_output.values import c_macro_value

if TYPE_CHECKING:
    from culaunch._triton.saved.set import SavedSet


class CSet:
    """The names, functions and texts of one set in C.

    Parameters
    ----------
    kernels : SavedSet
    name : str or None
        The prefix of all names; None: the kernel's own name.
    as_object : bool
        Whether the images are in a separate object.

    Raises
    ------
    ValueError
        If C cannot express a part of the set.
    """

    def __init__(self, kernels: SavedSet, name: str | None, as_object: bool) -> None:
        self.kernels = kernels
        self.name = name or c_identifier(kernels.name, is_function=True)
        self.macros = self._macros()
        self.configs = CConfigs(kernels, self.name, self.macros)
        # Function parameters must not have macros' names, nor hide functions that are called.
        taken = [*self.macros, self.configs.any, self.name]
        self.functions = [
            CFunction(name, kernels, self.configs, variants, [*taken, name, f"{name}_default"])
            for name, variants in (
                (f"{self.name}{suffix}", variants) for suffix, variants in group_by_types(kernels)
            )
        ]
        # If callers must set a field, there is no default configuration.
        self.defaults = [] if self.configs.must_say else list(map(CDefault, self.functions))
        self.choices = [
            CChoice(kernels.table, one, self.configs, taken)
            for one in self.functions
            if kernels.table is not None
        ]
        self.images = CImages(kernels, self.name, as_object)

    def source(self, header: str) -> str:
        """Return the text of the source."""
        bodies = [
            *(one.body for one in self.choices),
            *(one.body for one in self.functions),
            *(one.body for one in self.defaults),
        ]
        # The first list of types also gets the plain names.
        first = self.functions[0]
        # The plain name always exists: adding another list of types keeps the names that programs
        # call.
        if first.name != self.name:
            bodies.append(_forward("CUresult ", self.name, first))
            bodies += [
                _forward("CUresult ", f"{self.name}_default", one) for one in self.defaults[:1]
            ]
            bodies += [
                _forward(f"const {self.configs.type} *", f"{self.name}_choose", one)
                for one in self.choices[:1]
            ]
        uses_tensors = any(one.is_descriptor for one in first.parameters.all)
        encodes = any("culaunch_encode(" in one for one in bodies)
        arithmetic = arithmetic_used(bodies)
        return "\n".join(
            [
                c_include(header) + "\n",
                *(["#include <math.h>\n"] if self.needs_math(bodies) else []),
                data_text(__name__, "c/variant.c") + "\n",
                self.images.text,
                self.configs.table() + "\n",
                data_text(__name__, "c/launch.c"),
                *([data_text(__name__, "c/clear.c")] if self.kernels.zeroes else []),
                data_text(__name__, "c/manage.c").replace("CONFIG", self.configs.type),
                *([data_text(__name__, "c/tensor.c")] if uses_tensors else []),
                *([data_text(__name__, "c/encode.c")] if encodes else []),
                *([data_text(__name__, "c/choose.c")] if self.choices else []),
                *([arithmetic] if arithmetic else []),
                *bodies,
                self._management(),
            ]
        )

    def needs_math(self, bodies: list[str]) -> bool:
        """Whether the C library's mathematics is used."""
        return bool(self.choices) or any(
            f"{name}(" in one for one in bodies for name in (" ceil", "(ceil", "(floor", "fabs")
        )

    def _management(self) -> str:
        name, config = self.name, self.configs.type
        return (
            f"CUresult {name}_load(void) {{ return culaunch_prepare_all(NULL); }}\n\n"
            f"CUresult {name}_prepare(const {config} *config) {{\n"
            "  return culaunch_prepare_all(config);\n}\n\n"
            f"CUresult {name}_unload(void) {{ return culaunch_unload_all(); }}\n\n"
            f"int {name}_count(void) {{ return {len(self.configs.rows)}; }}\n\n"
            f"const {config} *{name}_config_at(int index) {{\n"
            f"  if (index < 0 || index >= {len(self.configs.rows)}) return NULL;\n"
            "  return &culaunch_configs[index];\n}\n"
        )

    def _macros(self) -> dict[str, str]:
        """Return the constants that are the same in all variants, as macros."""
        made = {}
        first, *others = self.kernels.variants
        computed = {one.name for one in self.kernels.computed}
        for key, value in first.constants.items():
            # Compare by text: for readers of the macro, True is not 1.
            same = all(repr(one.constants.get(key)) == repr(value) for one in others)
            if not same or key in computed or type(value) not in (int, bool):
                continue
            text = c_macro_value(value)
            if text is not None and key != "ANY":
                made[c_identifier(f"{self.name.upper()}_{key}")] = text
        return made


def _forward(result: str, name: str, target: CFunction | CChoice | CDefault) -> str:
    called = f"{target.name}({target.arguments})"
    return f"{result}{name}({target.parameter_list}) {{\n  return {called};\n}}\n"
