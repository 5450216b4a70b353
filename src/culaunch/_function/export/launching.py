"""Effects as C++ statements, over culaunch/function_call.h."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Protocol

from culaunch._function.export.expressions import float_literal, int_literal
from culaunch._function.export.names import text_literal
from culaunch._function.export.outputs import output_index
from culaunch._function.export.refusals import refusal
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.effects import Allocate, Launch, Parameter, Return, View
from culaunch._launch.formats.dtype import DTYPES, DType
from culaunch._launch.launches.launch_options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from culaunch._function.export.images import Images
    from culaunch._function.export.names import Names, Variables
    from culaunch._function.programs.program import Leaf, Tree

DTYPE_NAMES = {
    "bool": "kBool", "int8": "kInt8", "int16": "kInt16", "int32": "kInt32", "int64": "kInt64",
    "uint8": "kUInt8", "uint16": "kUInt16", "uint32": "kUInt32", "uint64": "kUInt64",
    "float16": "kFloat16", "bfloat16": "kBFloat16", "float32": "kFloat32", "float64": "kFloat64",
    "complex64": "kComplex64", "complex128": "kComplex128", "float8_e4m3fn": "kFloat8E4M3FN",
    "float8_e5m2": "kFloat8E5M2", "float8_e8m0fnu": "kFloat8E8M0FNU",
}  # fmt: skip


def dtype_name(number: int) -> str:
    """Return the C++ name of an element type."""
    return f"ffi::{DTYPE_NAMES[DTYPES[number].name]}"


class Writing(Protocol):
    """The function that is being written."""

    tree: Tree
    names: Names
    variables: Variables
    arrays: dict[int, str]

    def put(self, depth: int, text: str) -> None:
        """Write a line."""

    def show(self, depth: int, place: object) -> None:
        """Write the body's line as a comment."""

    def at(self, place: object) -> str:
        """Write a place as a literal."""

    def value(self, register: Any) -> str:
        """Return the expression of a register."""


class EffectWriter:
    """Writes the effects at the ends of paths."""

    def __init__(self, body: Writing, images: Images) -> None:
        self.body = body
        self.images = images
        self._made: dict[int, str] = {}
        self._views: dict[int, View] = {}
        self._defined: dict[int, Allocate | View] = {}
        self._pointers: dict[int, str] = {}

    @property
    def name(self) -> str:
        """The function's."""
        return self.body.tree.name

    def leaf(self, leaf: Leaf, depth: int) -> None:
        """Write a path's effects, in order."""
        outputs = output_index(leaf)
        self._made, self._views, self._pointers = {}, {}, {}
        made = [effect for effect in leaf.effects if isinstance(effect, (Allocate, View))]
        self._defined = {effect.array: effect for effect in made}
        launches = [effect for effect in leaf.effects if isinstance(effect, Launch)]
        # Check every launch before making the first one: as in Python, a body launches all or
        # nothing.
        for later in launches[1:]:
            self._require(later, depth)
        for effect in leaf.effects:
            if isinstance(effect, Allocate):
                self._allocate(effect, outputs.get(effect.array, -1), depth)
            elif isinstance(effect, View):
                self._view(effect, depth)
            elif isinstance(effect, Launch):
                self._launch(effect, depth)
            else:
                assert isinstance(effect, Return)
                self.body.put(depth, f"return {self._result(effect.value)};")

    # ---- arrays

    def _allocate(self, effect: Allocate, output: int, depth: int) -> None:
        body = self.body
        body.show(depth, effect.place)
        name = body.names.new(body.variables.of_array(effect.place) or f"array_{effect.array}")
        self._made[effect.array] = name
        shape = ", ".join(map(body.value, effect.shape))
        what = f"{dtype_name(effect.dtype)}, {{{shape}}}, {output}, {body.at(effect.place)}"
        body.put(depth, f"const fn::Array {name} = call.Allocate({what});")
        if effect.fill:
            body.put(depth, f"call.Zero({name});")

    def _view(self, effect: View, depth: int) -> None:
        self._views[effect.array] = effect
        if effect.shape:
            return  # shown where it is returned
        name = self.body.names.new(f"{self._plain_name(effect.source)}_at")
        offset = self.body.value(effect.offset)
        self.body.put(depth, f"void* const {name} = fn::At({self._data(effect.source)}, {offset});")
        self._pointers[effect.array] = name

    def _plain_name(self, array: int) -> str:
        return self._made.get(array) or self.body.arrays.get(array, "array")

    def _data(self, array: int) -> str:
        if array in self._pointers:
            return self._pointers[array]
        if array in self._made:
            return f"{self._made[array]}.data()"
        return f"ffi::Data({self.body.arrays[array]})"

    # ---- launches

    def _launch(self, launch: Launch, depth: int) -> None:
        body = self.body
        body.show(depth, launch.place)
        if launch.predicate is not None:
            body.put(depth, f"if ({body.value(launch.predicate)}) {{")
            depth += 1
        arguments = [self._parameter(one, launch, depth) for one in launch.parameters]
        config = self._config(launch, depth)
        kernel = self.images.kernel(launch.kernel)
        body.put(depth, f"call.Launch({kernel},")
        ends = "," if arguments else ");"
        body.put(depth, f"            {config}, {body.at(launch.place)}{ends}")
        if arguments:
            body.put(depth, f"            {', '.join(arguments)});")
        if launch.predicate is not None:
            body.put(depth - 1, "}")

    def _config(self, launch: Launch, depth: int) -> str:
        """Return the expression of a launch's configuration."""
        # Use one expression if possible: most launches have a grid, a block and perhaps shared
        # memory.
        given = dict(launch.options)
        config = f"{{{self._dims(given['grid'])}, {self._dims(given['block'])}"
        if "shared_memory" in given:
            config += f", fn::Dimension({self.body.value(given['shared_memory'][0])})"
        config += "}"
        settings = self._settings(launch)
        if not settings:
            return config
        name = self.body.names.new("config")
        self.body.put(depth, f"culaunch::LaunchConfig {name}{config};")
        for setting in settings:
            self.body.put(depth, f"{name}.{setting};")
        return name

    def _require(self, launch: Launch, depth: int) -> None:
        """Write the check of a later launch before the earlier launches."""
        if launch.predicate is not None:
            self.body.put(depth, f"if ({self.body.value(launch.predicate)}) {{")
            depth += 1
        config = self._config(launch, depth)
        kernel = self.images.kernel(launch.kernel)
        self.body.put(depth, f"call.Require({kernel}, {config}, {self.body.at(launch.place)});")
        for operands in _tensor_maps(launch.parameters):
            written = self._tensor_map(operands, launch, self._address(operands[1]))
            self.body.put(depth, f"{written};")
        if launch.predicate is not None:
            self.body.put(depth - 1, "}")

    def _settings(self, launch: Launch) -> list[str]:
        found = []
        for name, registers in launch.options:
            kind = OPTIONS[name].kind
            if kind == "dims":
                found.append(f"{name} = {self._dims(registers)}")
            elif kind == "switch":
                found.append(f"{name} = true")
            elif kind == "int":
                value = self.body.value(registers[0])
                found += [f"has_{name} = true", f"{name} = static_cast<int>({value})"]
        return found

    def _dims(self, sizes: tuple[Any, ...]) -> str:
        values = list(map(self.body.value, sizes))
        while len(values) > 1 and values[-1] == "1":
            values.pop()
        return f"fn::Dims({', '.join(values)})"

    def _parameter(self, parameter: Parameter, launch: Launch, depth: int) -> str:
        kind, _, size, operands = parameter
        if kind == oc.P_ARRAY:
            return self._data(operands[0])
        if kind == oc.P_INT:
            return f"static_cast<int{8 * size}_t>({self.body.value(operands[0])})"
        if kind == oc.P_FLOAT:
            return self._float(operands, size)
        if kind == oc.P_BOOL:
            return f"bool{{{self.body.value(operands[0])}}}"
        if kind == oc.P_NULL:
            return "fn::kNull"
        if kind == oc.P_BYTES:
            return self._bytes(parameter, launch, depth)
        if kind == oc.P_TENSOR_MAP:
            return self._tensor_map(operands, launch, self._data(operands[1]))
        raise refusal(
            self.name,
            "it closes over an array, which a library cannot hold: make it an argument",
            launch.place,
        )

    def _float(self, operands: tuple[Any, ...], size: int) -> str:
        value = self.body.value(operands[0])
        if size == 8:
            return f"double{{{value}}}"
        if size == 4:
            return f"static_cast<float>({value})"
        return f"culaunch::{'Bfloat16Bits' if operands[1] == 4 else 'Float16Bits'}({value})"

    def _bytes(self, parameter: Parameter, launch: Launch, depth: int) -> str:
        constant, patches = parameter.operands
        body = self.body
        name = body.names.new("structure")
        # Omit trailing zeros, because C++ fills an array with them.
        data = bytearray(constant.value)
        for patch in patches:  # written below: these bytes come from the traced call
            data[patch.offset : patch.offset + patch.size] = bytes(patch.size)
        written = ", ".join(map(str, data.rstrip(b"\0"))) or "0"
        body.put(depth, f"fn::Bytes<{parameter.size}> {name} = {{{{{written}}}}};")
        for patch in patches:
            body.put(depth, f"{name}.Set({patch.offset}, {self._parameter(patch, launch, depth)});")
        return name

    def _address(self, array: int) -> str:
        """Return an address for an array that may not exist yet."""
        if array in self.body.arrays:
            return f"ffi::Data({self.body.arrays[array]})"
        effect = self._defined[array]
        if isinstance(effect, Allocate):
            return "fn::Somewhere()"
        return f"fn::At({self._address(effect.source)}, {self.body.value(effect.offset)})"

    def _tensor_map(self, operands: tuple[Any, ...], launch: Launch, data: str) -> str:
        constant, _, rank, *registers = operands
        values = list(map(self.body.value, registers))
        ends = (0, rank, 2 * rank - 1, 3 * rank - 1, 4 * rank - 1)
        lists = [f"{{{', '.join(values[start:end])}}}" for start, end in itertools.pairwise(ends)]
        numbers = ", ".join(str(int(one)) for one in constant.value)
        return (
            f"call.TensorMap({{{numbers}}}, {data}, {', '.join(lists)}, "
            f"{self.body.at(launch.place)})"
        )

    # ---- results

    def _result(self, value: tuple[Any, ...]) -> str:
        kind, *rest = value
        if kind == oc.V_NONE:
            return "fn::Any()"
        if kind in oc.V_NUMBERS:
            type_ = ("int64_t", "double", "bool")[kind - oc.V_INT]
            return f"fn::Any({type_}{{{self.body.value(rest[0])}}})"
        if kind == oc.V_ARRAY:
            return self._array_result(rest[0])
        if kind in (oc.V_TUPLE, oc.V_LIST):
            return f"tvm::ffi::Array<fn::Any>{{{', '.join(map(self._result, rest[0]))}}}"
        if kind == oc.V_MADE:
            return f"tvm::ffi::Array<fn::Any>{{{', '.join(map(self._result, rest[1]))}}}"
        if kind == oc.V_DICT:
            pairs = [f"{{{text_literal(name)}, {self._result(one)}}}" for name, one in rest[0]]
            return f"tvm::ffi::Map<tvm::ffi::String, fn::Any>{{{', '.join(pairs)}}}"
        if kind == oc.V_CONSTANT:
            return self._constant(rest[0].value)
        raise refusal(
            self.name,
            "it returns one of its arguments, which the library does not own and the caller "
            "already has: return only new arrays",
        )

    def _array_result(self, array: int) -> str:
        view = self._views.get(array)
        if view is None:
            return f"{self._made[array]}.result()"
        # TVM-FFI returns objects that own their memory, and an argument is borrowed.
        if view.source not in self._made:
            raise refusal(
                self.name,
                "it returns a view of one of its arguments, which the library does not own: "
                "return only new arrays",
                view.place,
            )
        shape, strides = (
            f"fn::Sizes{{{', '.join(map(self.body.value, sizes))}}}"
            for sizes in (view.shape, view.strides)
        )
        base, offset = self._made[view.source], self.body.value(view.offset)
        return f"fn::View({base}, {offset}, {dtype_name(view.dtype)}, {shape}, {strides})"

    def _constant(self, value: Any) -> str:
        if type(value) is bool:
            return f"fn::Any({'true' if value else 'false'})"
        if type(value) is int and -(1 << 63) <= value < 1 << 63:
            return f"fn::Any(int64_t{{{int_literal(value)}}})"
        if type(value) is float:
            return f"fn::Any({float_literal(value)})"
        if type(value) is str:
            return f"fn::Any(tvm::ffi::String({text_literal(value)}))"
        if isinstance(value, DType):
            return f"fn::Any({dtype_name(value.number)})"
        raise refusal(
            self.name, f"it returns the constant {value!r:.60}, which TVM-FFI cannot represent"
        )


def _tensor_maps(parameters: Iterable[Parameter]) -> Iterator[tuple[Any, ...]]:
    """Yield the tensor maps' operands among parameters, and in their structures."""
    for kind, _, _, operands in parameters:
        if kind == oc.P_TENSOR_MAP:
            yield operands
        elif kind == oc.P_BYTES:
            yield from _tensor_maps(operands[1])
