"""The tuned table in C: a function that chooses a configuration, for each list of types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._triton.c_output.names import NameSpace, c_string
from culaunch._triton.c_output.values import c_value, is_c_value
from culaunch._triton.saved.select import settings_fit
from culaunch._triton.saved.tuned_table import types_apart
from culaunch._triton.variants.parameter_sources import leaves_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._triton.c_output.configs import CConfigs
    from culaunch._triton.c_output.function import CFunction
    from culaunch._triton.saved.tuned_table import TunedTable


class CChoice:
    """The function that chooses a configuration for one C function.

    It uses the same order as `culaunch.triton`. First come the rows for devices with this name,
    then those for this architecture, then those that name none. Then come the nearest older
    architecture and the nearest newer one. Within these, element types count first, and then sizes
    by their ratio. The functions that it calls are in ``c/choose.c``.

    Parameters
    ----------
    table : TunedTable
    function : CFunction
    configs : CConfigs
    taken : iterable of str
        Macro names that the header uses.
    """

    def __init__(
        self,
        table: TunedTable,
        function: CFunction,
        configs: CConfigs,
        taken: Iterable[str],
    ) -> None:
        self._table = table
        self._function = function
        self._configs = configs
        names = NameSpace(taken)
        self._keys = [names.add(key) for key in table.key]

    @property
    def name(self) -> str:
        """Its name in C."""
        return f"{self._function.name}_choose"

    @property
    def parameter_list(self) -> str:
        """The text between the parentheses of its declaration."""
        return ", ".join(f"int64_t {key}" for key in self._keys) or "void"

    @property
    def arguments(self) -> str:
        """The arguments that another function with the same parameters passes on to it."""
        return ", ".join(self._keys)

    @property
    def declaration(self) -> str:
        """Its declaration, without the semicolon."""
        return f"const {self._configs.type} *{self.name}({self.parameter_list})"

    @property
    def body(self) -> str:
        """Its table and its definition."""
        name = f"culaunch_tuned_{self._function.name}"
        types = self._types()
        lists, rows = [], []
        for number, entry in enumerate(self._table.entries):
            indices = [
                index
                for index, variant in self._function.variants
                if not settings_fit(variant, entry.constants, entry.options)
            ]
            # Skip a configuration whose variants do not run on the device, like
            # `TunedTable.of_device`.
            listed = ", ".join(map(str, [*indices, -1]))
            lists.append(f"static const int {name}_runs_{number}[] = {{{listed}}};\n")
            for key, value in zip(self._table.key, entry.values, strict=True):
                if not is_c_value(value):
                    raise ValueError(
                        f"C cannot choose by {key} of the tuned table, which is {value!r:.60}, "
                        "but only by ints, bools and None. Compile the set with configs=[...], "
                        "which leaves the table out"
                    )
            # At least one element, because an array of size zero is not valid C.
            values = ", ".join([c_value(value) for value in entry.values] or ["0"])
            rows.append(
                f"    {{{name}_runs_{number}, {c_string(entry.device)}, {entry.capability}, "
                f"{types_apart(entry.dtypes, types)}, "
                f"{{{values}}}, {{{self._configs.row_of(entry.settings)}}}}},\n"
            )
        count = len(self._keys)
        distances = "".join(
            f"    culaunch_distance += culaunch_apart({name}[culaunch_i].values[{place}], {key});\n"
            for place, key in enumerate(self._keys)
        )
        return (
            "".join(lists)
            + "static const struct {\n  const int *runs;\n  const char *device;\n"
            + "  int capability, types_apart;\n"
            + f"  int64_t values[{max(count, 1)}];\n  {self._configs.type} config;\n"
            + f"}} {name}[] = {{\n"
            + "".join(rows)
            + f"}};\n\n{self.declaration} {{\n"
            "  int culaunch_device = 0, culaunch_capability = 0;\n"
            '  char culaunch_device_name[256] = "";\n'
            "  size_t culaunch_best = 0;\n  double culaunch_least = INFINITY;\n"
            "  if (culaunch_find_device(&culaunch_device, &culaunch_capability) != CUDA_SUCCESS)\n"
            "    culaunch_capability = 0;\n"
            "  else if (cuDeviceGetName(culaunch_device_name, (int)sizeof culaunch_device_name,\n"
            "                           (CUdevice)culaunch_device) != CUDA_SUCCESS)\n"
            "    culaunch_device_name[0] = 0;\n"
            f"  for (size_t culaunch_i = 0; culaunch_i < sizeof {name} / sizeof {name}[0]; "
            "++culaunch_i) {\n"
            f"    double culaunch_distance = {name}[culaunch_i].types_apart * 5e5;\n"
            + distances
            + f"    culaunch_distance += 1e9 * culaunch_far({name}[culaunch_i].device, "
            f"{name}[culaunch_i].capability,\n"
            "                                             culaunch_device_name, "
            "culaunch_capability);\n"
            f"    if (!culaunch_row_runs({name}[culaunch_i].runs, culaunch_capability)) continue;\n"
            "    if (culaunch_distance < culaunch_least) {\n"
            "      culaunch_least = culaunch_distance;\n      culaunch_best = culaunch_i;\n    }\n"
            f"  }}\n  return &{name}[culaunch_best].config;\n}}\n"
        )

    def _types(self) -> tuple[str, ...]:
        """Return the element types of the function's tensors, in order, as in a tuned key."""
        columns = zip(*(leaves_of(one.types) for _, one in self._function.variants), strict=True)
        pointers = [
            next((kind for kind in column if kind.startswith("*")), "") for column in columns
        ]
        return tuple(kind[1:].removeprefix("k") for kind in pointers if kind)
