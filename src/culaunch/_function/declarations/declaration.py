"""The declaration of a function: its parameters, their defaults and annotations."""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_list
from culaunch._base.values import spell
from culaunch._function.declarations.annotations import Array, Wanted, dtype_of, wanted

if TYPE_CHECKING:
    import types
    from collections.abc import Sequence


# How a parameter is passed.
POSITIONAL_ONLY, POSITIONAL_OR_KEYWORD, KEYWORD_ONLY = range(3)


class Declaration:
    """The parameters of a body.

    Attributes
    ----------
    body : function
    name : str
    names : tuple[str, ...]
        The parameters'.
    parameters : tuple
        The name of each, and how it is passed.
    defaults : dict[str, object]
    """

    def __init__(self, body: types.FunctionType) -> None:
        self.body = body
        self.name = body.__name__
        code = body.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            stars = "*" if code.co_flags & inspect.CO_VARARGS else "**"
            raise TypeError(
                f"{self.name} must not take {stars}{code.co_varnames[count]}, because a function "
                "has a fixed list of arguments: name each argument, or take a tuple or list of "
                "arrays"
            )
        if code.co_flags & (
            inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
        ):
            raise TypeError(
                f"{self.name} must not be a generator or a coroutine, because a function runs to "
                "its end: write it without yield and async"
            )
        # A code object's variables begin with its arguments; keyword-only arguments come last among
        # those.
        self.names = code.co_varnames[:count]
        self.parameters = tuple(
            (
                name,
                POSITIONAL_ONLY
                if i < code.co_posonlyargcount
                else POSITIONAL_OR_KEYWORD
                if i < code.co_argcount
                else KEYWORD_ONLY,
            )
            for i, name in enumerate(self.names)
        )
        given = body.__defaults__ or ()
        first = code.co_argcount - len(given)
        self.defaults = dict(zip(self.names[first : code.co_argcount], given, strict=True))
        self.defaults |= body.__kwdefaults__ or {}

    @functools.cached_property
    def keyword_only(self) -> tuple[str, ...]:
        """The keyword-only parameters, which come last."""
        return tuple(name for name, how in self.parameters if how == KEYWORD_ONLY)

    def as_passed(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional arguments and the keywords of a call, given all values."""
        positional = len(self.names) - len(self.keyword_only)
        return (
            tuple(values[:positional]),
            dict(zip(self.keyword_only, values[positional:], strict=True)),
        )

    def checked_mutates(self, mutates: Any) -> tuple[str, ...]:
        """Return the declared names of parameters that are written.

        Raise ValueError if a name is not a parameter.
        """
        names = tuple(checked_list("mutates", mutates, "names of parameters"))
        for name in names:
            if name not in self.names:
                raise ValueError(
                    f"mutates must name parameters of {self.name}, which are "
                    f"{', '.join(self.names) or 'none'} (got {spell(name)})"
                )
        return names

    @functools.cached_property
    def annotations(self) -> dict[str, Any]:
        """The annotations; strings are evaluated, and omitted if this fails."""
        found = {}
        for name, annotation in _raw(self.body).items():
            value = self._evaluated(name, annotation) if isinstance(annotation, str) else annotation
            if value is not _UNKNOWN:
                found[name] = value
        return found

    @functools.cached_property
    def wanted(self) -> dict[int, Wanted]:
        """The accepted values of each parameter whose annotation can be checked."""
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
                    f"{self.name}: the annotation of {name} says dtype_of({other!r}), but there "
                    f"is no parameter {other!r}"
                )
            found[index] = want
        return found

    def _evaluated(self, name: str, text: str) -> Any:
        # With ``from __future__ import annotations`` they are strings. They may name a variable of
        # an enclosing function, which `typing` would not find.
        scope = dict(self.body.__globals__)
        for free, cell in zip(
            self.body.__code__.co_freevars, self.body.__closure__ or (), strict=True
        ):
            with contextlib.suppress(ValueError):
                scope[free] = cell.cell_contents
        try:
            return eval(text, scope)  # noqa: S307 - the user's own annotation, as typing does it
        except NameError as error:
            # Names that exist only for type checkers mean nothing here.
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
    """Return the annotations without evaluating strings."""
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
