"""Functions whose programs are there, and whose bodies are not: those of a library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._core import Function as CoreFunction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._function.calling.function import Function
    from culaunch._function.declarations.backward import Backward
    from culaunch._function.declarations.declaration import Declared
    from culaunch._function.export import Exported


class RecordedFunction(CoreFunction):
    """The interface for frameworks of a function that cannot be traced.

    Attributes
    ----------
    declaration : Declared
        Its parameters.
    """

    __name__: str
    __qualname__: str
    declaration: Declared
    # As of a function: what was declared to be written, and the frameworks that know it.
    _declared: tuple[str, ...] | None
    _doors: list[Any]

    @property
    def _gradient(self) -> Backward | None:
        raise NotImplementedError

    def abstract(self, *args: Any, **keywords: Any) -> Any:
        """Run it on shapes: ``AbstractArray`` stands for arrays, and nothing is launched."""
        raise NotImplementedError

    def paths(self) -> Iterator[tuple[dict[int, set[str]], tuple[Any, ...], int]]:
        """Yield, for each path, the uses of arguments, the views and the end, and the arrays.

        The first is parameter -> ``read``, ``write`` or ``unknown``; the last, how many of the
        arguments are arrays. Paths that end in an error are left out.
        """
        raise NotImplementedError

    def _exported(self) -> Exported:
        """Return the programs that there are, for ``export``."""
        raise NotImplementedError


if TYPE_CHECKING:
    # The frameworks' operators are made from this.
    AnyFunction = Function[..., Any] | RecordedFunction
