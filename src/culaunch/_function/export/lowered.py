"""Calls of fused functions as launches of their kernels, as far as a library can hold them.

A fused function chooses its kernel at the call, by the memory layout of the arrays. In a saved or
exported program, the plan chooses between a kernel for dense arrays and one for any strides. The
launch checks its arguments like any other launch.
"""

from __future__ import annotations

import itertools
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.values import spell
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.effects import Allocate, Call, Constant, Launch, Parameter, View
from culaunch._function.programs.program import Leaf, Node, Tree
from culaunch._function.programs.record import Instruction, Register, bits_of
from culaunch._function.tracing.kinds import arrays
from culaunch._launch.formats.dtype import FIRST_SCALAR, WEAK, DType, find_dtype, operand_type
from culaunch._launch.launches.recording import ELEMENTWISE, KERNELS_OF_CALLS, WHOLE

if TYPE_CHECKING:
    from culaunch._base.places import Place
    from culaunch._function.tracing.kinds import Kind
    from culaunch._launch.launches.recording import CallKernels, LoopKernel

_MOST_BLOCKS = (1 << 31) - 1
_WEAK = {oc.V_BOOL: WEAK[bool], oc.V_INT: WEAK[int], oc.V_FLOAT: WEAK[float]}


def lowered(tree: Tree, kind: Kind) -> Tree:
    """Return a tree without calls of fused functions, or the tree itself if it has none.

    Raise TypeError if a call takes a value that no program can hold.
    """
    # Most functions only launch kernels, and are returned unchanged.
    leaves = [node.leaf for node in tree.nodes() if node.leaf is not None]
    if not any(isinstance(one, Call) for leaf in leaves for one in leaf.effects):
        return tree
    made = Tree(tree.name, tree.array_arguments)
    made.registers, made.paths = tree.registers, tree.paths
    made.names, made.array_names, made.uses = dict(tree.names), tree.array_names, tree.uses
    given = [(dtype, rank) for _, (_, dtype, rank, _) in arrays(kind)]

    # Make a new tree, because the tree that calls run still calls the fused functions.
    def copied(node: Node) -> Node:
        new = Node()
        new.steps, new.guard = list(node.steps), node.guard
        new.branches = {side: copied(one) for side, one in node.branches.items()}
        if node.leaf is not None:
            new.leaf = Leaf(_LeafLowering(made, new, given).effects(node.leaf))
        return new

    made.root = copied(tree.root)
    return made


class _Array(NamedTuple):
    """An array as the plan knows it, its dimensions from the outermost in."""

    dtype: int
    shape: tuple[Register, ...]
    strides: tuple[Register, ...]  # in elements
    remainder: Register | None  # its address modulo 16, or None


class _LeafLowering:
    """Writes launches at the end of one path, and their inputs to its plan."""

    def __init__(self, tree: Tree, node: Node, given: list[tuple[int, int]]) -> None:
        self.tree = tree
        self.node = node
        self.given = given
        self.arrays: dict[int, _Array] = {}
        self._known: dict[tuple[str, tuple[int, ...]], Register] = {}
        self._place: Place | None = None

    def effects(self, leaf: Leaf) -> tuple[Any, ...]:
        made: list[Any] = []
        for effect in leaf.effects:
            if isinstance(effect, Call):
                self._place = effect.place
                made += self._launches(effect)
                continue
            if isinstance(effect, (Allocate, View)):
                self._place = effect.place
                self._define(effect)
            made.append(effect)
        return tuple(made)

    # ---- arrays

    def _define(self, effect: Allocate | View) -> None:
        if isinstance(effect, Allocate):
            strides = self._dense(effect.shape)
            self.arrays[effect.array] = _Array(effect.dtype, effect.shape, strides, None)
            return
        # Only a view's alignment to packs of 16 bytes matters, and remainders add up.
        base = self._array(effect.source)
        remainder = self._emit("MOD", effect.offset, self._int(16))
        if base.remainder is not None:
            both = self._emit("ADD", remainder, base.remainder)
            remainder = self._emit("MOD", both, self._int(16))
        self.arrays[effect.array] = _Array(effect.dtype, effect.shape, effect.strides, remainder)

    def _array(self, number: int) -> _Array:
        found = self.arrays.get(number)
        if found is None:
            dtype, rank = self.given[number]
            shape = tuple(self._emit("DIM", number, axis) for axis in range(rank))
            strides = tuple(self._emit("STRIDE", number, axis) for axis in range(rank))
            remainder = self._emit("MOD", self._emit("ADDRESS", number), self._int(16))
            found = self.arrays[number] = _Array(dtype, shape, strides, remainder)
        return found

    def _dense(self, shape: tuple[Register, ...]) -> tuple[Register, ...]:
        strides = [self._int(1)]
        for size in reversed(shape[1:]):
            strides.insert(0, self._emit("MUL", strides[0], size))
        return tuple(strides[: len(shape)])

    # ---- one call

    def _launches(self, call: Call) -> list[Launch]:
        outputs = [self._array(one) for one in call.outputs]
        inputs = [self._array(one) if kind == oc.V_ARRAY else None for kind, one in call.arguments]
        rank = max(1, len(outputs[0].shape))
        kernels = _kernels_of(call.callable, bytes(self._numbers(call, inputs)), rank)
        sizes = (*reversed(outputs[0].shape),) or (self._int(1),)
        size = sizes[0]
        for one in sizes[1:]:
            size = self._emit("MUL", size, one)
        looped = [
            *outputs,
            *(one for one, role in zip(inputs, kernels.roles, strict=True)
              if one is not None and role == ELEMENTWISE),
        ]  # fmt: skip
        strides = [
            self._strides(one, rank, is_output=i < len(outputs)) for i, one in enumerate(looped)
        ]
        pointers = [
            *call.outputs,
            *(value for (_, value), role in zip(call.arguments, kernels.roles, strict=True)
              if role in (ELEMENTWISE, WHOLE)),
        ]  # fmt: skip
        operands = [(oc.P_ARRAY, (one,)) for one in pointers]
        operands += [self._scalar(call, index, dtype) for index, dtype in kernels.scalars]
        is_any = self._emit("GT", size, self._int(0))
        is_dense = self._is_dense(looped, strides, sizes, size)
        packed, general = kernels.dense, kernels.general
        # Two launches, but only one happens: a program has no branches except its guards, and those
        # belong to the body.
        is_packed = self._emit("AND_B", is_dense, is_any)
        others = self._emit("AND_B", self._emit("NOT", is_dense), is_any)
        packs = self._emit("FLOORDIV", size, self._int(packed.vector))
        layout = [(oc.P_INT, (one,)) for one in (size, *sizes[:-1], *itertools.chain(*strides))]
        return [
            self._launch(call, packed, is_packed, packs, [*operands, (oc.P_INT, (size,))]),
            self._launch(call, general, others, size, [*operands, *layout]),
        ]

    def _strides(self, array: _Array, rank: int, *, is_output: bool) -> tuple[Register, ...]:
        """Return strides from the innermost dimension outward; 0 if the array is broadcast."""
        zero, one = self._int(0), self._int(1)
        found = []
        for size, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
            is_one = self._emit("EQ", size, one)
            found.append(stride if is_output else self._emit("SELECT_I", is_one, zero, stride))
        return (*found, *[zero] * (rank - len(found)))

    def _is_dense(
        self, arrays: list[_Array], strides: list[tuple[Register, ...]],
        sizes: tuple[Register, ...], size: Register,
    ) -> Register:  # fmt: skip
        """Return whether all arrays are in C order, aligned, and fit 32-bit indices."""
        found = self._emit("LT", size, self._int(1 << 31))
        dense = self._dense(tuple(reversed(sizes)))[::-1]
        for array, own in zip(arrays, strides, strict=True):
            if array.remainder is not None:
                aligned = self._emit("EQ", array.remainder, self._int(0))
                found = self._emit("AND_B", found, aligned)
            for extent, stride, wanted in zip(sizes, own, dense, strict=True):
                if stride == wanted:
                    continue
                is_one = self._emit("EQ", extent, self._int(1))
                is_same = self._emit("EQ", stride, wanted)
                found = self._emit("AND_B", found, self._emit("OR_B", is_one, is_same))
        return found

    def _launch(
        self, call: Call, loop: LoopKernel, predicate: Register, packs: Register,
        operands: list[tuple[int, tuple[Any, ...]]],
    ) -> Launch:  # fmt: skip
        each = self._int(loop.block * loop.unroll)
        one = self._int(1)
        blocks = self._emit("CEILDIV", packs, each)
        blocks = self._emit("MIN", self._emit("MAX", blocks, one), self._int(_MOST_BLOCKS))
        places = loop.kernel.signature.parameters
        parameters = []
        for place, (kind, values) in zip(places, operands, strict=True):
            more = (2, 8 * place.size) if kind == oc.P_FLOAT else ()  # DLPack's type
            parameters.append(Parameter(kind, place.offset, place.size, (*values, *more)))
        options = (("grid", (blocks, one, one)), ("block", (self._int(loop.block), one, one)))
        return Launch(loop.kernel, predicate, options, call.place, tuple(parameters))

    # ---- arguments

    def _numbers(self, call: Call, inputs: list[_Array | None]) -> list[int]:
        numbers = []
        for (kind, value), array in zip(call.arguments, inputs, strict=True):
            if array is not None:
                numbers.append(array.dtype)
            elif kind in _WEAK:
                numbers.append(_WEAK[kind].number)
            else:
                numbers.append(self._number_of(call, value))
        return numbers

    def _number_of(self, call: Call, value: Any) -> int:
        value = value.value if isinstance(value, Constant) else value
        if type(value) in WEAK:
            return WEAK[type(value)].number
        dtype = find_dtype(getattr(value, "dtype", None))
        if dtype is None or getattr(value, "ndim", None) != 0 or not hasattr(value, "item"):
            raise self._refusal(call, value)
        return FIRST_SCALAR + dtype.number

    def _scalar(self, call: Call, index: int, number: int) -> tuple[int, tuple[Any, ...]]:
        """Return the effect of passing a number, converted as in a call."""
        wanted = operand_type(number)
        kind, value = call.arguments[index]
        if kind not in _WEAK:
            number_given = _number(value)
            if type(number_given) is complex:
                if wanted.kind != "c":
                    raise self._refusal(call, value)
                halves = struct.pack(_halves(wanted), number_given.real, number_given.imag)
                return oc.P_BYTES, (Constant(halves), ())
            value, kind = self._constant(call, number_given)
        if wanted.kind == "b":
            if kind == oc.V_FLOAT:
                return oc.P_BOOL, (self._emit("FNE", value, self._float(0.0)),)
            is_bool = kind == oc.V_BOOL
            return oc.P_BOOL, (value if is_bool else self._emit("NE", value, self._int(0)),)
        if kind == oc.V_BOOL:
            value, kind = self._emit("B2I", value), oc.V_INT
        if wanted.kind in "iu":
            if kind == oc.V_FLOAT:
                raise self._refusal(call, "a float that would become an int")
            fits = (value, wanted.itemsize, int(wanted.kind == "i"))
            step = Instruction(oc.OPS["RANGE"], None, fits, self._place)
            self.node.steps.append(step)
            return oc.P_INT, (value,)
        if kind == oc.V_INT:
            value = self._emit("I2F", value)
        if wanted.kind == "c":  # a structure of two numbers; the first one is used
            size = wanted.itemsize
            real = Parameter(oc.P_FLOAT, 0, size // 2, (value, 2, 4 * size))
            return oc.P_BYTES, (Constant(bytes(size)), (real,))
        return oc.P_FLOAT, (value,)

    def _constant(self, call: Call, value: Any) -> tuple[Register, int]:
        if type(value) is bool:
            return self._emit("CONST_B", int(value)), oc.V_BOOL
        if type(value) is int and -(1 << 63) <= value < 1 << 63:
            return self._int(value), oc.V_INT
        if type(value) is float:
            return self._float(value), oc.V_FLOAT
        raise self._refusal(call, value)

    def _refusal(self, call: Call, value: Any) -> TypeError:
        what = value if isinstance(value, str) else spell(value)
        name = getattr(call.callable, "__name__", type(call.callable).__name__)
        return TypeError(
            f"at {call.place}: {self.tree.name} calls {name} with {what}, which a library cannot "
            "hold: give it an array or a number"
        )

    # ---- the plan

    def _int(self, value: int) -> Register:
        return self._emit("CONST_I", value)

    def _float(self, value: float) -> Register:
        return self._emit("CONST_F", bits_of(value))

    def _emit(self, name: str, *operands: int) -> Register:
        # Like `Record.emit`, reuse the register of an equal instruction on the same registers.
        key = (name, operands)
        found = self._known.get(key)
        if found is None:
            op = oc.OPS[name]
            found = self._known[key] = Register(self.tree.registers)
            self.tree.registers += 1
            place = self._place if op.has_text else None
            self.node.steps.append(Instruction(op, found, operands, place))
        return found


def _kernels_of(function: Any, numbers: bytes, rank: int) -> CallKernels:
    for one in type(function).__mro__:
        make = KERNELS_OF_CALLS.get(one)
        if make is not None:
            return make(function, numbers, rank)
    name = getattr(function, "__name__", type(function).__name__)
    raise TypeError(
        f"{name} is called in the body, but a library cannot hold it: launch a kernel instead"
    )


def _halves(dtype: DType) -> str:
    """Return how a complex number's two halves are stored."""
    return "<2f" if dtype.itemsize == 8 else "<2d"


def _number(value: Any) -> Any:
    """Return the Python number of a constant, and any other value unchanged."""
    value = value.value if isinstance(value, Constant) else value
    return value.item() if hasattr(value, "item") else value
