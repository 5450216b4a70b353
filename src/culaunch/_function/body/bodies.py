"""Running bodies: the current one of a thread, and the common interface of the three modes."""

from __future__ import annotations

import contextlib
import gc
import threading
from typing import TYPE_CHECKING, Any

from culaunch._base.places import here
from culaunch._base.values import spell
from culaunch._core import around_collection as collection_callback
from culaunch._core import follow_calls
from culaunch._function.body.driver_handlers import caught_driver_error
from culaunch._function.programs.record import escaped
from culaunch._function.symbolic.configuration import Configuration, from_keywords
from culaunch._function.symbolic.symbols import foreign_kind
from culaunch._launch.formats.dtype import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from culaunch._launch.formats.dtype import DType


class Body:
    """A run of a body: traced, live or abstract.

    Attributes
    ----------
    mode : str
        ``"trace"``, ``"live"`` or ``"abstract"``.
    name : str
        The function's.
    """

    mode = ""
    ordinal = 0

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_open = True
        self.refusal: Exception | None = None

    def refuse(self, error: Exception) -> Exception:
        """Record an operation that no program can do, and return its error.

        The call raises it, even if the body catches it.
        """
        if self.refusal is None:
            self.refusal = error
        return error

    def require_possible(self) -> None:
        """Raise the recorded error, even if the body has caught it."""
        if self.refusal is not None:
            raise self.refusal

    def require_open(self) -> None:
        """Refuse a stand-in that is used after its body has run."""
        if not self.is_open:
            escaped()

    def check(
        self, condition: Any, message: str | Callable[[], str], exception: type[Exception]
    ) -> None:
        """Raise unless a condition holds."""
        if not condition:
            raise exception(message if isinstance(message, str) else f"{message()} (at {here()})")

    def allocate(self, shape: tuple[Any, ...], dtype: DType, fill: int) -> Any:
        """Allocate an array in the framework of the call's first array."""
        self._require_uncaught("an allocation")
        return self._allocate(shape, dtype, fill)

    def _allocate(self, shape: tuple[Any, ...], dtype: DType, fill: int) -> Any:
        raise NotImplementedError

    def what(self, value: object) -> str | None:
        """Return ``"array"``, ``"int"``, ``"float"``, ``"bool"``, or None for other values."""
        if hasattr(type(value), "_is_stand_in"):
            return "array"
        for kind in (bool, int, float):
            if isinstance(value, kind):
                return kind.__name__
        foreign = foreign_kind(value)
        return None if foreign is None else foreign.__name__

    def real(self, value: Any) -> Any:
        """Return the array that a stand-in represents; any other value is returned unchanged."""
        return value

    def place(self, array: Any) -> tuple[object, Any]:
        """Return the memory of an array, None if it is an argument's, and its place there."""
        root = array._root
        offset = array._offset * array.itemsize
        return (root, offset) if root.kind == "allocated" else (None, self._base(root) + offset)

    def _base(self, root: Any) -> Any:
        """Return the whole address of an argument."""
        return root.address

    def empty(self, shape: Sequence[Any], dtype: str, *, zeros: bool = False) -> Any:
        """Allocate an array with an element type given by name."""
        return self.allocate(tuple(shape), BY_NAME[dtype], int(zeros))

    def launch(
        self, kernel: Any, args: Sequence[Any], *, predicate: Any = None, **options: Any
    ) -> None:
        """Launch a kernel; `options` are the keywords of ``kernel.configure``."""
        self.enqueue(kernel, from_keywords(**options), predicate, tuple(args))

    def enqueue(
        self, kernel: Any, configuration: Configuration, predicate: Any, args: tuple[Any, ...]
    ) -> None:
        """Launch a kernel if a condition holds; None means always."""
        self._require_uncaught("a launch")
        self._enqueue(kernel, configuration, predicate, args)

    def _enqueue(
        self, kernel: Any, configuration: Configuration, predicate: Any, args: tuple[Any, ...]
    ) -> None:
        raise NotImplementedError

    def call(
        self, function: Callable[..., Any], args: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Call something native with arrays and numbers, and ``out=``."""
        self._require_uncaught("a launch")
        self._call(function, args, outputs)

    def _call(
        self, function: Callable[..., Any], args: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        raise NotImplementedError

    def _require_uncaught(self, what: str) -> None:
        """Refuse a handler for errors that only the driver raises, after the body has ended."""
        caught = caught_driver_error()
        if caught is not None:
            raise self.refuse(
                TypeError(
                    f"at {here().text()}: the body catches {caught.__name__} from {what}, which "
                    f"runs after the body: catch it around the call of {self.name}"
                )
            )

    def box_map(
        self, array: Any, shape: Sequence[Any], strides: Sequence[Any], box: Sequence[int],
        numbers: tuple[int, ...],
    ) -> Any:  # fmt: skip
        """Describe a view, from the beginning of its array, for bulk copies."""
        view = array._view(tuple(shape), tuple(strides), array._offset)
        return view._tensor_map(tuple(box), None, numbers)

    def sample(self, array: Any, *, whole: bool) -> Any:
        """Return an array of zeros like one of the body, or an empty one unless `whole`."""
        raise NotImplementedError

    def depends_on(self, container: Any, name: str | None, value: object) -> None:
        """Note that the recording depends on an entry of a dict, or on a cell."""

    def apart(self) -> contextlib.AbstractContextManager[None]:
        """Leave the body for a while: launches of this thread in the block are not part of it."""
        return running(None)

    def active(self) -> contextlib.AbstractContextManager[None]:
        """Call the user's code from a room that is not followed."""
        return running(self)

    def inline(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run the body of another function as part of this body."""
        raise NotImplementedError


_local = threading.local()


def current() -> Body | None:
    """Return the body that runs in this thread, or None."""
    return getattr(_local, "body", None)


@contextlib.contextmanager
def running(body: Body | None) -> Generator[None, None, None]:
    """Make a body current in this thread. None leaves the current one for a while."""
    # Bodies nest: a function called in a body makes its own body current for the call.
    before = current()
    _local.body = body
    # While no body runs, calls of Python functions cost nothing extra.
    was_followed = follow_calls(body is not None)
    try:
        yield
    finally:
        follow_calls(was_followed)
        _local.body = before


def around_collection(phase: str) -> None:
    """Leave the body of this thread while the garbage collector runs finalizers.

    Finalizers may run at any time, and their launches do not belong to the body.
    """
    if phase == "start":
        body = current()
        if body is not None:
            _local.aside = body, follow_calls(False)
            _local.body = None
    elif getattr(_local, "aside", None) is not None:
        _local.body, was_followed = _local.aside
        _local.aside = None
        follow_calls(was_followed)


gc.callbacks.append(collection_callback)


def reads_data(what: str, how: str, instead: str) -> TypeError:
    """Make the error of a body that reads the data of an array."""
    return TypeError(
        f"at {here().text()}: {what} {how}, which depends on its data. A body is recorded once "
        f"for each kind of arguments and sees only shapes and numbers: {instead}"
    )


def checked_message(message: object) -> str:
    """Return a check's message."""
    if not isinstance(message, str):
        raise TypeError(f"message must be a str (got {spell(message)})")
    return message
