"""A header beside a library: its functions with types, for C++ that is built elsewhere."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._function.export.expressions import float_literal, int_literal
from culaunch._function.export.names import Names, text_literal
from culaunch._function.export.outputs import is_refusal, outputs_of
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.effects import Constant, Return
from culaunch._function.tracing.kinds import described
from culaunch._launch.formats.dtype import find_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._function.export.exported import Exported
    from culaunch._function.tracing.kinds import Entry

_HEAD = """\
// The functions of {file}, written by culaunch. Link with it, and with libtvm_ffi.so; the headers
// of apache-tvm-ffi are all that this one needs. What a function raises is a tvm::ffi::Error.
#pragma once

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/container/tuple.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/string.h>

#include <cstdint>

{declared}

namespace {name} {{

using ::tvm::ffi::Any;
using ::tvm::ffi::AnyView;
using ::tvm::ffi::Tensor;
using ::tvm::ffi::TensorView;

namespace detail {{

template <class... Arguments>
inline Any Call(TVMFFISafeCallType function, const Arguments&... arguments) {{
  const AnyView views[] = {{AnyView(arguments)..., AnyView()}};
  Any result;
  const int code = function(nullptr, reinterpret_cast<const TVMFFIAny*>(views),
                            static_cast<int32_t>(sizeof...(arguments)),
                            reinterpret_cast<TVMFFIAny*>(&result));
  TVM_FFI_CHECK_SAFE_CALL(code);
  return result;
}}

}}  // namespace detail
{functions}
}}  // namespace {name}
"""
_TENSOR = "const TensorView&"
_ANY = "const AnyView&"
_NUMBERS = {oc.V_INT: "int64_t", oc.V_FLOAT: "double", oc.V_BOOL: "bool"}
_CONSTANTS = {bool: "bool", int: "int64_t", float: "double", str: "::tvm::ffi::String"}


def library_header(functions: Sequence[Exported], name: str, file: str) -> str:
    """Write the header of a library.

    Parameters
    ----------
    functions : sequence of Exported
    name : str
        Name of the namespace.
    file : str
        Name of the library's file, for readers of the header.
    """
    texts = [_Function(one) for one in functions]
    exports = [export for one in texts for export in one.exports]
    declared = "\n".join(
        f"int __tvm_ffi_{one}(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);" for one in exports
    )
    return _HEAD.format(
        file=" ".join(file.split()),
        declared=f'extern "C" {{\n{declared}\n}}',
        name=name,
        functions="".join(one.text for one in texts),
    )


class _Parameter(NamedTuple):
    name: str
    type: str
    default: str | None


class _Function:
    """One function, and that which writes its results to arrays of the caller."""

    def __init__(self, function: Exported) -> None:
        self.function = function
        self.name = function.declaration.name
        programs = [(kind, tree) for kind, tree in function.programs if tree.paths]
        self.kinds = [kind for kind, _ in programs]
        # The form that writes to arrays of the caller is there where all programs agree on how many
        # there are.
        counts = {outputs_of(tree) for _, tree in programs}
        count = counts.pop() if len(counts) == 1 else None
        found = {_returned(tree) for _, tree in programs}
        result = found.pop() if len(found) == 1 else "Any"
        parameters = self._parameters()
        self.exports = [self.name]
        self.text = self._written(self.name, parameters, result)
        if count:
            self.exports.append(f"{self.name}_into")
            names = Names()
            taken = {one.name for one in parameters}
            outs: list[_Parameter] = []
            while len(outs) < count:
                name = names.new("out")
                if name not in taken:
                    outs.append(_Parameter(name, _TENSOR, None))
            self.text += self._written(f"{self.name}_into", [*outs, *parameters], "void")

    def _parameters(self) -> list[_Parameter]:
        declaration, names = self.function.declaration, Names()
        found = []
        for index, name in enumerate(declaration.names):
            type_ = self._type(index, [kind[index] for kind in self.kinds])
            default = declaration.defaults.get(name, inspect.Parameter.empty)
            found.append(_Parameter(names.new(name), type_, _default(type_, default)))
        # As in C++, those after one with a default have one, too.
        last = max((i for i, one in enumerate(found) if one.default is None), default=-1)
        return [one._replace(default=None) if i < last else one for i, one in enumerate(found)]

    def _type(self, index: int, entries: list[Entry]) -> str:
        want = self.function.declaration.wanted.get(index)
        if want is not None and float in want.plain and int not in want.plain:
            entries = [float if entry is int else entry for entry in entries]
        # A parameter has the type that all kinds of calls give it, or any.
        types = {_type_of(entry) for entry in entries}
        return types.pop() if len(types) == 1 else _ANY

    def _written(self, name: str, parameters: list[_Parameter], result: str) -> str:
        doc = inspect.cleandoc(self.function.doc or "").splitlines()
        kinds = dict.fromkeys(self._described(kind) for kind in self.kinds)
        # A backslash at the end of a comment would make the next line one too.
        about = [*doc, *([""] if doc else []), "For", *(f"    {kind}" for kind in kinds)]
        lines = ["", *(f"// {line}".rstrip().rstrip("\\") for line in about)]
        given = ", ".join(
            f"{one.type} {one.name}" + (f" = {one.default}" if one.default else "")
            for one in parameters
        )
        passed = "".join(f", {one.name}" for one in parameters)
        call = f"detail::Call(&__tvm_ffi_{name}{passed})"
        body = call if result in ("void", "Any") else f"{call}.cast<{result}>()"
        cpp_name = Names().new(name)
        lines.append(f"inline {result} {cpp_name}({given}) {{")
        lines += [f"  {'' if result == 'void' else 'return '}{body};", "}"]
        return "\n".join([*lines, ""])

    def _described(self, kind: Any) -> str:
        names = self.function.declaration.names
        return ", ".join(
            f"{name}: {described(entry)}" for name, entry in zip(names, kind, strict=True)
        )


def _type_of(entry: Entry) -> str:
    if entry is int or entry is float:
        return "int64_t" if entry is int else "double"
    if type(entry) is bool:
        return "bool"
    if entry is None:
        return _ANY
    if entry[0] == "array":
        return _TENSOR
    if entry[0] in ("list", "tuple"):
        return "const ::tvm::ffi::Array<Tensor>&"
    if type(entry[1]) is str:
        return "const ::tvm::ffi::String&"
    return "DLDataType" if find_dtype(entry[1]) is not None else _ANY


def _default(type_: str, default: Any) -> str | None:
    if type_ == "bool" and type(default) is bool:
        return "true" if default else "false"
    if type_ == "int64_t" and type(default) is int:
        return int_literal(default)
    if type_ == "double" and type(default) in (int, float):
        return float_literal(float(default))
    if type_ == "const ::tvm::ffi::String&" and type(default) is str:
        return text_literal(default)
    return "AnyView()" if type_ == _ANY and default is None else None


def _returned(tree: Any) -> str:
    """Return the C++ type of what a program gives; Any where paths differ."""
    found = set()
    for node in tree.nodes():
        if node.leaf is not None and not is_refusal(node):
            end = node.leaf.effects[-1]
            assert isinstance(end, Return)
            found.add(_type_of_value(end.value))
    return found.pop() if len(found) == 1 else "Any"


def _type_of_value(value: tuple[Any, ...]) -> str:
    kind, *rest = value
    if kind == oc.V_NONE:
        return "void"
    if kind in _NUMBERS:
        return _NUMBERS[kind]
    if kind == oc.V_ARRAY:
        return "Tensor"
    if kind == oc.V_CONSTANT and isinstance(rest[0], Constant):
        return _CONSTANTS.get(type(rest[0].value), "Any")
    if kind in (oc.V_TUPLE, oc.V_MADE):
        items = [_type_of_value(one) for one in rest[-1]]
        return f"::tvm::ffi::Tuple<{', '.join('Any' if one == 'void' else one for one in items)}>"
    if kind == oc.V_LIST:
        return "::tvm::ffi::Array<Any>"
    return "::tvm::ffi::Map<::tvm::ffi::String, Any>" if kind == oc.V_DICT else "Any"
