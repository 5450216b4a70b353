"""A set's configurations in C: a structure whose fields never change, and its values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.c_output.names import NameSpace
from culaunch._triton.c_output.values import c_value, check_distinct, is_c_value
from culaunch._triton.saved.select import setting_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from culaunch._triton.saved.set import SavedSet
    from culaunch._triton.saved.variant import SavedVariant

# Every launch passes these; 0 means any.
_OPTIONS = ("num_warps", "num_stages", "num_ctas")
_OTHER = "other"


class CConfigs:
    """The settings by which a caller chooses variants.

    The structure has a field for each constant of the kernel that no heuristic computes, for three
    compile options, and one for constants that are not numbers in C. Its fields depend only on the
    kernel: more variants do not change it.

    Parameters
    ----------
    kernels : SavedSet
    name : str
        The set's name in C.
    taken : collection of str
        Macro names that the header uses.
    """

    def __init__(self, kernels: SavedSet, name: str, taken: Collection[str]) -> None:
        self.type = f"{name}_config"
        self.any = f"{name.upper()}_ANY"
        names = NameSpace((*taken, self.any))
        # The caller does not choose values that heuristics compute.
        computed = {one.name for one in kernels.computed}
        self._constants = [
            one.name for one in kernels.parameters if one.is_constexpr and one.name not in computed
        ]
        self._options = [one for one in _OPTIONS if one not in self._constants]
        # Include all constants and options, so adding variants keeps the structure.
        self.fields = {one: names.add(one) for one in (*self._constants, *self._options, _OTHER)}
        self._must_say = [one for one in self._constants if one in kernels.heuristics]
        self._numbers: dict[str, int] = {}  # numbers for values that C does not have
        # Check this before any row: two constants with the same number in C would select the wrong
        # variant.
        for one in self._constants:
            check_distinct(one, [variant.constants.get(one) for variant in kernels.variants])
        rows = [self._row(one) for one in kernels.variants]
        self.rows = list(dict.fromkeys(rows))
        self.of_variant = [self.rows.index(row) for row in rows]

    @property
    def must_say(self) -> list[str]:
        """The fields that a call must set, because heuristics gave them that are not saved."""
        return [self.fields[one] for one in self._must_say]

    def row_of(self, settings: Mapping[str, Any]) -> str:
        """Return the values of the fields for a tuned configuration."""
        return self._text(self._values(settings, {}))

    def structure(self) -> str:
        """Return the declaration of the type."""
        options = {self.fields[one] for one in self._options}
        fields = [
            f"  int64_t {field};{_about(field, options, self.fields[_OTHER])}\n"
            for field in self.fields.values()
        ]
        return (
            "\n/* The settings in which the variants differ. -1 stands for None, "
            f"and {self.any} for anything. */\n"
            f"#define {self.any} INT64_MIN\n"
            f"typedef struct {{\n{''.join(fields)}}} {self.type};\n"
        )

    def table(self) -> str:
        """Return the table of all configurations, and the function that compares with it."""
        rows = ",\n".join(f"    {{{self._text(row)}}}" for row in self.rows)
        numbers = ", ".join(str(one) for one in self.of_variant)
        tests = []
        for one, field in self.fields.items():
            # A constant may be 0. An option of 0 means unspecified, so a structure of zeros accepts
            # any option.
            is_any = f"given->{field} == {self.any}"
            if one not in self._constants:
                is_any += f" || given->{field} == 0"
            tests.append(f"         ({is_any} || given->{field} == own->{field})")
        return (
            f"static const {self.type} culaunch_configs[] = {{\n{rows}}};\n"
            f"static const int culaunch_config_of[] = {{{numbers}}};\n\n"
            f"static int culaunch_config_fits(const {self.type} *given, int variant) {{\n"
            f"  const {self.type} *own = &culaunch_configs[culaunch_config_of[variant]];\n"
            "  if (given == NULL) return 1;\n"
            "  return " + " &&\n".join(tests).lstrip() + ";\n}\n"
        )

    def _row(self, variant: SavedVariant) -> tuple[Any, ...]:
        settings = {
            one: setting_of(variant, one)
            for one in (*self._constants, *self._options, *variant.options)
        }
        return self._values(settings, self._other_settings(variant))

    def _other_settings(self, variant: SavedVariant) -> dict[str, Any]:
        """Return the settings of a variant that have no field of their own."""
        rest = {
            one: variant.constants[one]
            for one in self._constants
            if not is_c_value(variant.constants.get(one))
        }
        return {
            **rest,
            **{one: value for one, value in variant.options.items() if one not in self.fields},
        }

    def _values(self, settings: Mapping[str, Any], rest: Mapping[str, Any]) -> tuple[Any, ...]:
        constants = (settings.get(one, _ANYTHING) for one in self._constants)
        options = (settings.get(one) for one in self._options)
        return (
            *(one if is_c_value(one) else _ANYTHING for one in constants),
            *(int(one) if type(one) is int and is_c_value(one) else 0 for one in options),
            self._number(rest),
        )

    def _number(self, rest: Mapping[str, Any]) -> int:
        if not rest:
            return 0
        # Constants that are not numbers in C get a number here, in the order of the variants.
        key = repr(sorted((one, repr(value)) for one, value in rest.items()))
        return self._numbers.setdefault(key, len(self._numbers) + 1)

    def _text(self, row: Sequence[Any]) -> str:
        return ", ".join(self.any if one is _ANYTHING else c_value(one) for one in row)


_ANYTHING = "anything"


def _about(field: str, options: Collection[str], other: str) -> str:
    if field in options:
        return " /* 0: any */"
    return (
        " /* 0: any; constants that are not numbers in C, as numbered here */"
        if field == other
        else ""
    )
