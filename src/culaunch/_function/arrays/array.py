"""Stand-ins for arrays: shape, type and place of an array, without its data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.places import here
from culaunch._base.values import counted, spell
from culaunch._function.arrays import views
from culaunch._function.body.refusals import Refusals
from culaunch._launch.formats.dtype import DType, find_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._function.body.bodies import Body


class Root:
    """The memory of a stand-in: an argument, an allocation, or a real array.

    Attributes
    ----------
    kind : str
        ``"argument"``, ``"allocated"`` or ``"constant"``.
    name : str
        Its name in errors.
    index : int
        Its number among the arrays of the program; of a constant, -1.
    parameter : int
        The number of an argument; -1 for other kinds.
    element : int
        The index of an array in a list; -1 for others.
    real : object
        The array, if there is one.
    is_read_only : bool
    """

    __slots__ = ("address", "element", "index", "is_read_only", "kind", "name", "parameter", "real")

    def __init__(
        self,
        kind: str,
        name: str,
        index: int = -1,
        *,
        parameter: int = -1,
        element: int = -1,
        real: Any = None,
        is_read_only: bool = False,
    ) -> None:
        self.kind = kind
        self.name = name
        self.index = index
        self.parameter = parameter
        self.element = element
        self.real = real
        self.is_read_only = is_read_only
        self.address = 0


class Layout:
    """The layout of an array: sizes, and strides in elements. They may be read lazily."""

    __slots__ = ("dense", "shape", "strides")

    def __init__(
        self,
        shape: tuple[Any, ...],
        strides: tuple[Any, ...],
        dense: Callable[[], Any] | None = None,
    ) -> None:
        self.shape = shape
        self.strides = strides
        self.dense = dense


class StandIn(Refusals):
    """An array as the body of a function sees it.

    ``shape``, ``ndim``, ``size``, ``dtype`` and ``device`` follow the array API standard;
    ``strides`` counts elements. Indexing with ints, slices, None and ``...`` returns views, and so
    can ``reshape``, ``permute``, ``transpose``, ``swapaxes``, ``T`` and ``mT``.
    """

    _is_stand_in = True  # bodies recognize stand-ins by it
    __slots__ = ("_body", "_dtype", "_is_whole", "_layout", "_offset", "_root")

    # NumPy's operators then return NotImplemented.
    __array_ufunc__ = None

    _body: Any
    _root: Root
    _dtype: DType
    _layout: Any
    _offset: Any
    _is_whole: bool

    def __init__(
        self,
        body: Body,
        root: Root,
        dtype: DType,
        layout: Any,
        offset: Any = 0,
        *,
        is_whole: bool = False,
    ) -> None:
        # `Refusals` refuses every attribute that a body tries to set.
        put = object.__setattr__
        put(self, "_is_whole", is_whole)
        put(self, "_body", body)
        put(self, "_root", root)
        put(self, "_dtype", dtype)
        put(self, "_layout", layout)
        put(self, "_offset", offset)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of its dimensions."""
        self._body.require_open()
        shape: tuple[Any, ...] = self._layout.shape
        return shape

    @property
    def strides(self) -> tuple[Any, ...]:
        """The steps of its dimensions, in elements."""
        self._body.require_open()
        strides: tuple[Any, ...] = self._layout.strides
        return strides

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        return views.product(self.shape)

    @property
    def dtype(self) -> DType:
        """The element type."""
        self._body.require_open()
        return self._dtype

    @property
    def device(self) -> Any:
        """The device of the call, with ``ordinal`` and ``attribute(name)``."""
        return self._body.device

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> Any:
        """The size of its elements in bytes."""
        return self.size * self._dtype.itemsize

    @property
    def T(self) -> StandIn:  # noqa: N802 - the standard's name
        """The view with the dimensions in the other order."""
        return self.permute(*reversed(range(self.ndim)))

    @property
    def mT(self) -> StandIn:  # noqa: N802 - the standard's name
        """The view with the last two dimensions swapped."""
        if self.ndim < 2:
            raise ValueError(
                f"at {here().text()}: {self._root.name} must have at least 2 dimensions for mT "
                f"(got {self.ndim})"
            )
        return self.swapaxes(-2, -1)

    def is_contiguous(self) -> Any:
        """Tell whether its elements lie one after the other, in C order."""
        self._body.require_open()
        layout = self._layout
        # Use one instruction for the whole question if there is one. A guard on each stride would
        # make several paths.
        if layout.dense is not None:
            return layout.dense()
        return views.is_dense(layout.shape, layout.strides)

    def is_aligned(self, bytes: int) -> Any:  # noqa: A002
        """Tell whether its address is a multiple of a number of bytes.

        Arrays that a function allocates are always aligned to 16 bytes and to their elements' size.
        """
        if type(bytes) is not int or bytes < 1:
            raise TypeError(f"bytes must be an int from 1 on (got {spell(bytes)})")
        address = self._body.address(self._root)
        # The address is not known before the allocation. Only the alignment that every allocator
        # guarantees is.
        if address is None:
            if max(16, self.itemsize) % bytes:
                return False
            address = 0
        place = address + self._offset * self.itemsize
        return (place % bytes) == 0

    def data_ptr(self) -> Any:
        """Return the address of its first element, for a kernel's parameter or a structure."""
        self._refuse_tritons_python()
        return self._body.pointer(self)

    # ---- views

    def __getitem__(self, key: Any) -> StandIn:
        if isinstance(key, StandIn):
            raise self._reads_data("is indexed by an array", "launch a kernel that gathers")
        shape, strides, offset = views.indexed(
            self._root.name, key, self.shape, self.strides, self._body.check
        )
        return self._view(shape, strides, self._offset + offset)

    def reshape(self, *shape: Any) -> StandIn:
        """Return the same elements with another shape; the array must be contiguous."""
        whole = views.reshaped(self._root.name, shape, self.shape, self._body.check)
        self._require_contiguous("reshape()")
        return self._dense(whole, self._dtype)

    def view(self, *shape: Any) -> StandIn:
        """Return the same elements with another shape, or with another type of the same size."""
        if len(shape) == 1 and (dtype := find_dtype(shape[0])) is not None:
            if dtype.itemsize != self.itemsize:
                raise ValueError(
                    f"at {here().text()}: dtype of view() must have "
                    f"{counted(self.itemsize, 'byte')}, as the "
                    f"array's elements have (got {dtype!r})"
                )
            return StandIn(self._body, self._root, dtype, self._layout, self._offset)
        return self.reshape(*shape)

    def flatten(self) -> StandIn:
        """Return its elements as one dimension; the array must be contiguous."""
        return self.reshape(-1) if self.ndim != 1 else self

    def permute(self, *axes: Any) -> StandIn:
        """Return the view with the dimensions in another order."""
        order = views.permutation(self._root.name, axes, self.ndim)
        shape, strides = self.shape, self.strides
        return self._view(
            tuple(shape[axis] for axis in order),
            tuple(strides[axis] for axis in order),
            self._offset,
        )

    def swapaxes(self, first: int, second: int) -> StandIn:
        """Return the view with two dimensions swapped."""
        order = list(range(self.ndim))
        first, second = (views.axis_of(self._root.name, one, len(order)) for one in (first, second))
        order[first], order[second] = order[second], order[first]
        return self.permute(*order)

    def transpose(self, *axes: Any) -> StandIn:
        """Put the dimensions in another order: all of them reversed, if none is given.

        Two dimensions are swapped, as torch does; a tuple, or another number of them, is the whole
        order, as NumPy has it. ``transpose(0, 1)`` of a matrix is refused: torch swaps there, and
        NumPy leaves the matrix as it is.
        """
        if not axes:
            return self.T
        if len(axes) != 2:
            return self.permute(*axes)
        name, rank = self._root.name, self.ndim
        if [views.axis_of(name, axis, rank) for axis in axes] == [0, 1] and rank == 2:
            given = ", ".join(map(str, axes))
            raise ValueError(
                f"at {here().text()}: transpose({given}) of a matrix swaps its dimensions in "
                f"PyTorch but not in NumPy: write {name}.mT or swapaxes(0, 1) to swap them"
            )
        return self.swapaxes(*axes)

    def _view(self, shape: tuple[Any, ...], strides: tuple[Any, ...], offset: Any) -> StandIn:
        self._body.require_open()
        return StandIn(self._body, self._root, self._dtype, Layout(shape, strides), offset)

    def _dense(self, shape: tuple[Any, ...], dtype: DType) -> StandIn:
        layout = Layout(shape, views.dense_strides(shape), lambda: True)
        return StandIn(self._body, self._root, dtype, layout, self._offset)

    def _require_contiguous(self, what: str) -> None:
        name = self._root.name
        self._body.check(
            self.is_contiguous(), lambda: f"{name} must be contiguous for {what}", ValueError
        )

    def __deepcopy__(self, _: object) -> StandIn:
        return self

    def __repr__(self) -> str:
        return f"<{self._root.name}, an array of {self._dtype!r}>"

    def _tensor_map(self, box: Any, steps: Any, numbers: tuple[int, ...], **keywords: Any) -> Any:
        """Describe it for bulk copies, as ``TensorMap.tiled`` does for a stand-in."""
        return self._body.tensor_map(self, box, steps, numbers, keywords)

    def _shown(self) -> str:
        return f"{self._root.name}, an array"
