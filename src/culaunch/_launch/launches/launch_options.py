"""The options of a launch, from the extension. csrc takes them from launch_options.h."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from culaunch._base.keywords import refuse_keywords
from culaunch._core import LAUNCH_OPTIONS
from culaunch._launch.launches.other_launches import OTHER_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Function = TypeVar("Function", bound=Callable[..., Any])


class Kind(NamedTuple):
    """The properties that all options of a kind share."""

    type: str
    """In docstrings."""
    annotation: str
    """In signatures."""
    default: Any
    """``inspect.Parameter.empty`` if a launch always gives the option."""


_DIMS = "int or tuple of up to 3 ints"
KINDS = {
    "required_dims": Kind(_DIMS, "Dims", inspect.Parameter.empty),
    "bytes": Kind("int, optional", "int", 0),
    "stream": Kind("int or object, optional", "object", None),
    "dims": Kind(f"{_DIMS}, optional", "Dims | None", None),
    "switch": Kind("bool, optional", "bool", False),
    "int": Kind("int, optional", "int | None", None),
}


class LaunchOption(NamedTuple):
    """A keyword of ``kernel.configure``."""

    name: str
    kind: str
    """One of :data:`KINDS`."""
    flag: int
    """The bit in a recorded launch for the presence of the option; 0 if it is always or never
    present."""
    attribute: int
    """Its ``CUlaunchAttributeID``; 0: it is a field of ``CUlaunchConfig``."""
    text: str
    """Its effect."""

    @property
    def default(self) -> Any:
        """The value in a launch that omits the option; ``Parameter.empty`` if it is required."""
        return KINDS[self.kind].default

    @property
    def is_required(self) -> bool:
        """Whether each launch must give it."""
        return self.default is inspect.Parameter.empty


OPTIONS = {row[0]: LaunchOption(*row) for row in LAUNCH_OPTIONS}
_REQUIRED = {name for name, option in OPTIONS.items() if option.is_required}


def are_options(given: Mapping[str, Any]) -> bool:
    """Whether these are options of a launch, with all that are required."""
    return _REQUIRED <= given.keys() <= OPTIONS.keys()


def refuse_options(function: str, given: Iterable[str]) -> NoReturn:
    """Raise TypeError for an unknown option, or for a required one that is missing."""
    unknown = [name for name in given if name not in OPTIONS]
    if unknown:
        refuse_keywords(function, unknown, OPTIONS, OTHER_WORDS)
    required = [f"{name}=" for name in OPTIONS if name in _REQUIRED]
    raise TypeError(f"{function} needs {' and '.join(required)}")


def takes_options(function: Function) -> Function:
    """Spell out the options of ``**options`` in the signature and in the docstring."""
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    options = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=KINDS[option.kind].annotation,
        )
        for option in OPTIONS.values()
    ]
    function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    if function.__doc__ is not None:  # python -OO removes docstrings
        function.__doc__ = _PLACE.sub(lambda found: documentation(found[1]), function.__doc__)
    return function


def documentation(indent: str) -> str:
    """Return the options as the parameters of a NumPy docstring."""
    rows = [
        f"{indent}{option.name} : {KINDS[option.kind].type}\n{indent}    {option.text}\n"
        for option in OPTIONS.values()
    ]
    return "".join(rows)


# The place of the options in a docstring. From Python 3.13 on, docstrings are not indented like the
# source.
_PLACE = re.compile(r"^( *)\*\*options\n +The options of a launch\.\n", re.MULTILINE)
