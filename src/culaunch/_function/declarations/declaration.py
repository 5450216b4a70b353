"""The declaration of a function: its parameters, their defaults and annotations."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any, Protocol

from culaunch._base.values import spell
from culaunch._function.declarations.annotations import Array, Wanted, dtype_of, wanted

if TYPE_CHECKING:
    import types


class Declared(Protocol):
    """The known facts about a function's parameters, with or without a body."""

    @property
    def name(self) -> str:
        """The function's name."""

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters'."""

    @property
    def parameters(self) -> tuple[tuple[str, int], ...]:
        """Of each parameter its name, and how it is passed."""

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults, by name."""

    @property
    def annotations(self) -> dict[str, Any]:
        """The annotations, by name."""

    @property
    def wanted(self) -> dict[int, Wanted]:
        """The accepted values of each parameter with a checkable annotation."""


class Declaration:
    """The parameters of a body.

    Attributes
    ----------
    body : function
    name : str
    names : tuple[str, ...]
        The parameters'.
    """

    def __init__(self, body: types.FunctionType) -> None:
        self.body = body
        self.name = body.__name__
        code = body.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            stars = "*" if code.co_flags & inspect.CO_VARARGS else "**"
            raise TypeError(
                f"{self.name} takes {stars}{code.co_varnames[count]}, and a function has a fixed "
                "list of arguments: name each, or take a tuple or list of arrays"
            )
        if code.co_flags & (
            inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
        ):
            raise TypeError(
                f"{self.name} is a generator or a coroutine: a function runs to its end"
            )
        # The arguments come first among a code object's variables, those by keyword alone behind
        # the others.
        self.names = code.co_varnames[:count]
        self.parameters = tuple(
            (
                name,
                0 if i < code.co_posonlyargcount else 1 if i < code.co_argcount else 2,
            )
            for i, name in enumerate(self.names)
        )
        given = body.__defaults__ or ()
        first = code.co_argcount - len(given)
        self.defaults = dict(zip(self.names[first : code.co_argcount], given, strict=True))
        self.defaults |= body.__kwdefaults__ or {}

    @functools.cached_property
    def annotations(self) -> dict[str, Any]:
        """The annotations, evaluated where they are text; those that cannot be are left out."""
        found = {}
        for name, annotation in _raw(self.body).items():
            value = self._evaluated(name, annotation) if isinstance(annotation, str) else annotation
            if value is not _UNKNOWN:
                found[name] = value
        return found

    @functools.cached_property
    def wanted(self) -> dict[int, Wanted]:
        """The accepted values of each parameter with a checkable annotation."""
        found = {}
        for index, name in enumerate(self.names):
            if name not in self.annotations:
                continue
            want = wanted(self.annotations[name])
            if want is None:
                continue
            if self.defaults.get(name, ...) is None:
                want.is_optional = True
            other = None if want.array is None else want.array.same
            if other is not None and other not in self.names:
                raise ValueError(
                    f"{self.name}: the annotation of {name} says dtype_of({other!r}), and there "
                    f"is no parameter {other!r}"
                )
            found[index] = want
        return found

    def _evaluated(self, name: str, text: str) -> Any:
        # With ``from __future__ import annotations`` they are text. They may name a variable of an
        # enclosing function, which `typing` would not find.
        scope = dict(self.body.__globals__)
        for free, cell in zip(
            self.body.__code__.co_freevars, self.body.__closure__ or (), strict=True
        ):
            with contextlib.suppress(ValueError):
                scope[free] = cell.cell_contents
        try:
            return eval(text, scope)  # noqa: S307 - the user's own annotation, as typing does it
        except NameError as error:
            # Names that are there for type checkers alone say nothing here.
            if "Array(" in text or "dtype_of(" in text:
                raise TypeError(
                    f"{self.name}: the annotation of {name}, {text!r}, cannot be read: {error}"
                ) from None
            return _UNKNOWN
        except Exception as error:
            raise TypeError(
                f"{self.name}: the annotation of {name}, {spell(text)}, cannot be read: {error}"
            ) from error


def _raw(body: types.FunctionType) -> dict[str, Any]:
    """Return the annotations as they are, without evaluating text."""
    try:
        return dict(inspect.get_annotations(body))
    except NameError:  # Python 3.14 evaluates them now
        import annotationlib  # type: ignore[import-not-found,unused-ignore]

        forward: dict[str, Any] = annotationlib.get_annotations(
            body, format=annotationlib.Format.STRING
        )
        return forward


_UNKNOWN = object()
__all__ = ["Array", "Declaration", "dtype_of"]
