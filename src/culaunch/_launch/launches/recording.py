"""The interface between a function's body and the packages that record launches in it.

A package with its own way to launch (Triton kernels, fused functions) registers here, and
``culaunch._function`` asks it. A body is a :class:`RecordingBody`. Its arrays (``shape``,
``strides``, ``dtype.name``, ``is_aligned(16)``) and numbers may be symbolic. A recorder treats them
like Python values: ``n % 16 == 0`` in an ``if`` is a guard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


class RecordingBody(Protocol):
    """The interface of the running body for a recorder."""

    mode: str
    """``"trace"``: record. ``"live"``: launch now, on ``real(value)``. ``"abstract"``: only check.
    The methods here follow the mode."""
    name: str
    """The function's name."""
    ordinal: int
    """The device of this call; 0 in ``"abstract"`` mode."""
    device: Any
    """``device.attribute(name)`` is a number that depends on the call's device, like any other
    number."""

    def what(self, value: object, /) -> str | None:
        """Return the kind of a value: ``"array"``, ``"int"``, ``"float"``, ``"bool"``, or None."""

    def real(self, value: Any, /) -> Any:
        """Return the array that a stand-in represents (live bodies); other values are unchanged."""

    def place(self, array: Any, /) -> tuple[object, Any]:
        """Return the memory of an array, and the address of its first element.

        The memory is None if it is an argument's. An allocation has no address before it is made:
        its memory is an object, and the number counts from there.
        """

    def check(
        self, condition: Any, message: str | Callable[[], str], exception: type[Exception], /
    ) -> None:
        """Raise unless a condition holds, in this call and in later ones."""

    def empty(self, shape: Sequence[Any], dtype: str, /, *, zeros: bool = False) -> Any:
        """Allocate an array as the framework of the call's arrays does."""

    def launch(
        self, kernel: Any, args: Sequence[Any], /, *, predicate: Any = None, **options: Any
    ) -> None:
        """Launch a kernel: ``options`` are the keywords of ``kernel.configure``."""

    def call(
        self, function: Callable[..., Any], args: Sequence[Any], outputs: Sequence[Any], /
    ) -> None:
        """Call something native with arrays and numbers, and ``out=`` (a tuple of several)."""

    def box_map(
        self, array: Any, shape: Sequence[Any], strides: Sequence[Any], box: Sequence[int],
        numbers: tuple[int, ...], /,
    ) -> Any:  # fmt: skip
        """Describe a view for bulk copies, as an argument of a launch.

        `numbers` are the numbers in ``cuda.h`` of the element type, interleave, swizzle, promotion
        and fill. The strides count elements.
        """

    def sample(self, array: Any, /, *, whole: bool) -> Any:
        """Return an array of zeros like one of the body, or an empty one unless `whole`.

        It belongs to the framework of the call, and is not part of the program. Code that selects
        by the types of arrays is called with it.
        """

    def depends_on(self, container: Any, name: str | None, value: object, /) -> None:
        """Note that the recording depends on an entry of a dict, or on a cell (None)."""

    def apart(self) -> AbstractContextManager[None]:
        """Leave the body for a while: launches of this thread in the block are not part of it."""

    def active(self) -> AbstractContextManager[None]:
        """Call the user's code from a recorder. It answers ``is`` as the body does."""


# A type of object -> recorder(body, object, how, args, keywords). `how` is "call", "getitem" (args:
# the key), "configure", or "run": what Triton's own Python launches (args: the grid, the arguments,
# the keywords). It returns the result for the body, or NotImplemented to continue without a
# recorder.
Recorder = Callable[[Any, Any, str, tuple[Any, ...], dict[str, Any]], Any]
RECORDERS: dict[type, Recorder] = {}


class LoopKernel(NamedTuple):
    """A kernel over elements."""

    kernel: Any
    """The parameters are pointers to the outputs and the arrays, then the scalars, then the number
    of elements. A kernel for any strides then takes the dimensions from the innermost outward,
    except for the last one. The strides of each array that is read element by element follow,
    outputs first."""
    block: int
    """Threads per block."""
    # The number of packs per thread, and of elements per pack.
    unroll: int
    vector: int


class CallKernels(NamedTuple):
    """The parts of a callable in a body that a program needs to launch its kernels directly."""

    roles: bytes
    """For each argument: ``ELEMENTWISE``, ``WHOLE``, or another value if the kernels do not receive
    it."""
    scalars: tuple[tuple[int, int], ...]
    """The scalar arguments, in the order of the kernels' parameters, and their element types."""
    dense: LoopKernel
    """For arrays in C order, aligned to 16 bytes, with at most 2^31 elements."""
    general: LoopKernel
    """For any strides."""


# The roles of arrays that are passed to a kernel.
ELEMENTWISE, WHOLE = 1, 2

# Types of objects that bodies call -> a function that returns the kernels. It gets the object, the
# numbers of its arguments' element types, and the rank of its results.
KERNELS_OF_CALLS: dict[type, Callable[[Any, bytes, int], CallKernels]] = {}
