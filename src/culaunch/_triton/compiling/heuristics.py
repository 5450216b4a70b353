"""Heuristics at compile time: their possible values, and what a set saves of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.compiling.decorated import options_of
from culaunch._triton.expressions import (
    Expression,
    constant,
    is_boolean,
    known_leaf,
    partly,
    traced_heuristic,
)
from culaunch._triton.reads.purity import Unknown
from culaunch._triton.saved.set import SavedHeuristic
from culaunch._triton.variants.constants import SavedType, normal_constant, same_constant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from culaunch._triton.compiling.decorated import Heuristic
    from culaunch._triton.compiling.signature import Argument

_MOST_CASES = 64  # of values that only a call decides


class Heuristics:
    """The heuristics of a kernel that is compiled ahead of time.

    Parameters
    ----------
    function : JITFunction
    heuristics : sequence of Heuristic

    Attributes
    ----------
    saved : tuple of SavedHeuristic
        Heuristics that are expressions of arguments: a set computes them at each call.
    options : frozenset of str
        Names that are not arguments but options of the compiler, such as ``num_warps``. Their
        values are decided when a variant is compiled.
    """

    def __init__(self, function: Any, heuristics: tuple[Heuristic, ...]) -> None:
        self._name = function.__name__
        self._constexprs = {one.name for one in function.params if one.is_constexpr}
        self._unknown: dict[str, str] = {}
        made = []
        for one in heuristics:
            value = _traced(one, function.arg_names)
            if isinstance(value, str):
                self._unknown[one.name] = value
            else:
                made.append(SavedHeuristic(one.name, value, one.is_early))
        # A heuristic that reads the result of another one, which is not saved, gets it from the
        # call.
        self._traced = tuple(made)
        self.options = options_of(function, heuristics)
        self.saved = tuple(one for one in made if one.name not in self.options)

    @property
    def names(self) -> frozenset[str]:
        """All arguments that heuristics set."""
        return frozenset((*self._unknown, *(one.name for one in self.saved))) - self.options

    def is_given(self, name: str) -> bool:
        """Whether a heuristic gives a constant."""
        return name in self._constexprs and name in self.names

    def cases(
        self, arguments: Mapping[str, Argument], given: Mapping[str, Any], signature: str
    ) -> list[dict[str, Any]]:
        """Return the constants, and options, of every variant that a signature needs.

        Parameters
        ----------
        arguments : mapping
            The kernel's arguments by name, without the results of heuristics.
        given : mapping
            The constants and options that the caller names.
        signature : str
            For messages.

        Raises
        ------
        ValueError
            Naming a heuristic whose values are not known, or are others than those given.
        """
        decided = self._constexprs | self.options
        for name, reason in self._unknown.items():
            if name in decided and name not in given:
                raise ValueError(
                    f"the heuristic {name} of {self._name} cannot be saved: {reason}. Give its "
                    "value with constants= or configs=, and in every call of the set, or compile "
                    "the kernel below the decorator (.fn)"
                )
        known: dict[str, Any] = {
            name: one.value for name, one in arguments.items() if one.is_constant
        }
        fixed = {name: given[name] for name in self._unknown if name in given}
        # Heuristics are evaluated in order, each with the results of the earlier ones. If one is
        # open, the later ones are evaluated for all of its values.
        cases: list[dict[str, Any]] = [fixed]
        for one in self._traced:
            if one.name not in decided:  # its type is in the signature
                continue
            cases = [
                {**case, one.name: choice}
                for case in cases
                for choice in self._values(
                    one, partly(one.value, _Known({**known, **case}, arguments)), given, signature
                )
            ]
            if len(cases) > _MOST_CASES:
                raise ValueError(
                    f"the heuristics of {self._name} have more than {_MOST_CASES} combinations to "
                    "choose from at each call: give their values with constants= or configs="
                )
        return cases

    def _values(
        self, one: SavedHeuristic, value: Expression, given: Mapping[str, Any], signature: str
    ) -> list[Any]:
        where = f"the heuristic {one.name} = {one.value} of {self._name}"
        if value.op == "error":
            raise ValueError(f"{where} fails for {signature!r}: {value.operands[0]}")
        if one.name in given:
            chosen = normal_constant(given[one.name])
            if value.is_constant and not same_constant(value.value, chosen):
                raise ValueError(
                    f"{where} is {value} for {signature!r}, and never {chosen!r:.60}: leave it out"
                )
            return [chosen]
        if value.is_constant:
            return [value.value]
        # All forms are compiled if they can be listed.
        listed = [True, False] if is_boolean(value) else _listed(value)
        if listed and one.name not in self.options:
            return listed
        what = ""
        if one.name in self.options:
            what = ", and the calls of a set cannot choose by it"
        raise ValueError(
            f"{where} changes from call to call{what}: list the values to compile with "
            f"configs=[{{{one.name!r}: ...}}, ...]"
        )


def _listed(value: Expression) -> list[Any]:
    """Return the constants that an expression chooses between; nothing for other expressions."""
    if value.is_constant:
        return [value.value]
    if value.op != "if":
        return []
    yes, no = map(_listed, value.operands[1:])
    others = [one for one in no if not any(same_constant(one, other) for other in yes)]
    return [*yes, *others] if yes and no else []


def _traced(one: Heuristic, names: Sequence[str]) -> Expression | str:
    """Return a heuristic as an expression, or the reason why this is impossible."""
    try:
        return traced_heuristic(one.call, names)
    except Unknown as unknown:
        return str(unknown)


class _Known:
    """The known facts about the arguments when a variant is compiled."""

    def __init__(self, values: Mapping[str, Any], arguments: Mapping[str, Argument]) -> None:
        self._values = values
        self._arguments = arguments

    def __call__(self, op: str, name: str) -> Expression | None:
        if name in self._values and op != "dtype":
            return known_leaf(op, self._values[name])
        kind = getattr(self._arguments.get(name), "type", None)
        if op == "is_array" and isinstance(kind, str):
            return constant(kind.startswith("*"))
        if op == "is_none":
            return constant(False) if kind not in (None, "constexpr") else None
        if op == "dtype" and isinstance(kind, str) and kind.startswith("*"):
            return constant(SavedType(kind[1:].removeprefix("k")))
        return None
