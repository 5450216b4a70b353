"""The whole text of a library: its functions, which program a call runs, and the exports."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.values import spell
from culaunch._function.export import expressions as ex
from culaunch._function.export.body import BodyWriter
from culaunch._function.export.images import Images
from culaunch._function.export.launching import dtype_name
from culaunch._function.export.lowered import lowered
from culaunch._function.export.names import Names, comment, text_literal
from culaunch._function.export.outputs import outputs_of
from culaunch._function.export.refusals import refusal
from culaunch._function.tracing.kinds import described
from culaunch._launch.formats.dtype import DTYPES, find_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._function.export.exported import Exported
    from culaunch._function.programs.program import Tree
    from culaunch._function.tracing.kinds import Entry, Kind
    from culaunch._image import Image

_HEAD = """\
{about}
#include <culaunch/function.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>

{images}namespace {{

namespace ffi = culaunch::ffi;
namespace fn = culaunch::function;
using fn::TensorView;
using Outputs = std::initializer_list<TensorView>;
"""


class LibrarySource(NamedTuple):
    """The C++ text of a library, the images that it embeds by their names, what it exports."""

    text: str
    images: dict[str, Image]
    exports: tuple[str, ...]


def library_source(functions: Sequence[Exported], name: str) -> LibrarySource:
    """Write functions as one C++ text.

    Parameters
    ----------
    functions : sequence of Exported
    name : str
        What the names of the images begin with.

    Raises
    ------
    TypeError
        If a function does what no library without Python can.
    ValueError
        If a function was neither called nor specialized, or two have one name.
    """
    images = Images(re.sub(r"\W", "_", name))
    lines: list[str] = []
    exports: list[str] = []
    ends: list[str] = []
    for one in functions:
        writer = _FunctionWriter(one, images)
        lines += writer.lines
        exports += [export for export, _ in writer.exports]
        ends += [f"CULAUNCH_EXPORT_FUNCTION({e}, {body});" for e, body in writer.exports]
        if one.doc:
            literal = text_literal(inspect.cleandoc(one.doc))
            ends.append(f"TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC({one.declaration.name}, {literal});")
    for export in exports:
        # All names first, then the check: the message names an export that is there twice,
        # whichever function it came from.
        if exports.count(export) > 1:
            raise ValueError(
                f"two exports would be named {export}: _into after a function's name is the "
                "variant that writes to the caller's arrays"
            )
    declared = "".join(f"CULAUNCH_EMBED_CUBIN({image});\n" for image in images.named)
    about = "\n".join(comment([f"{one.declaration.name}, {one.origin}"]) for one in functions)
    about = f"// Written by culaunch from functions in Python: change those.\n{about}"
    head = _HEAD.format(about=about, images=declared + ("\n" if declared else ""))
    text = head + "\n".join([*lines, "", "}  // namespace", "", *ends, ""])
    return LibrarySource(text, images.named, tuple(exports))


class _FunctionWriter:
    """The functions of one function's kinds, and which of them a call runs."""

    def __init__(self, function: Exported, images: Images) -> None:
        self.declaration = function.declaration
        self.name = self.declaration.name
        self.lines: list[str] = []
        if not self.name.isascii() or not self.name.isidentifier():
            raise refusal(self.name, "its name is not a C identifier")
        programs = _distinct(function.programs)
        if not programs:
            raise ValueError(
                f"{self.name} was neither called nor specialized, so it has nothing to export. "
                f"Specialize it, for example {self.name}.specialize(x=cl.Array('float32', 'n'), "
                "factor=float)"
            )
        self._names = Names()
        title = self._names.new(self.name.title().replace("_", ""))
        conditions: list[tuple[str, str]] = []
        counts = set()
        for kind, called in programs:
            # Fused functions and Triton kernels become launches of images: a library has no
            # compiler.
            tree = lowered(called, kind)
            body = BodyWriter(
                self._names.new(_body_name(title, kind)), function, kind, tree, images
            )
            self.lines += body.write()
            conditions.append((self._condition(kind), self._call(body.name, kind)))
            counts.add(outputs_of(tree))
        self._dispatch(title, programs, conditions)
        self.exports = [(self.name, f"Call{title}")]
        self.lines += [
            "",
            f"void Call{title}(const fn::Arguments& arguments, fn::Any* result) {{",
            f"  *result = {title}(arguments, {{}});",
            "}",
        ]
        count = counts.pop() if len(counts) == 1 else None
        if count:
            self._into(title, count)

    def _dispatch(
        self,
        title: str,
        programs: list[tuple[Kind, Tree]],
        conditions: list[tuple[str, str]],
    ) -> None:
        kinds = ",\n                    ".join(
            text_literal(f"{self.name}({self._described(kind)})") for kind, _ in programs
        )
        put = self.lines.append
        put("")
        put(f"fn::Any {title}(const fn::Arguments& arguments, Outputs outputs) {{")
        put(f"  if (arguments.HasAtMost({len(self.declaration.names)})) {{")
        for condition, call in conditions:
            put(f"    if ({condition}) {{")
            put(f"      return {call};")
            put("    }")
        put("  }")
        put(f"  arguments.Refuse({{{kinds}}});")
        put("}")

    def _into(self, title: str, count: int) -> None:
        """Write the export whose results are written to arrays of the caller: they come first."""
        given = ", ".join(f"arguments.Array({index})" for index in range(count))
        self.exports.append((f"{self.name}_into", f"Call{title}Into"))
        self.lines += [
            "",
            f"void Call{title}Into(const fn::Arguments& arguments, fn::Any*) {{",
            f"  const fn::Arguments rest = arguments.After({count});",
            f"  {title}(rest, {{{given}}});",
            "}",
        ]

    def _described(self, kind: Kind) -> str:
        return ", ".join(
            f"{name}: {described(entry)}"
            for name, entry in zip(self.declaration.names, kind, strict=True)
        )

    # ---- which program

    def _condition(self, kind: Kind) -> str:
        parts = [
            self._is(index, name, entry)
            for index, (name, entry) in enumerate(zip(self.declaration.names, kind, strict=True))
        ]
        return " &&\n        ".join(parts) or "true"

    def _is(self, index: int, name: str, entry: Entry) -> str:
        # An argument that is left out counts as its default: a kind that the default is of takes
        # both.
        asked = self._question(index, name, entry)
        if self._is_default(name, entry):
            return f"({asked} || arguments.IsLeftOut({index}))"
        return asked

    def _question(self, index: int, name: str, entry: Entry) -> str:
        if entry is None:
            return f"arguments.IsNone({index})"
        if entry is True or entry is False:
            return f"arguments.IsBool({index}, {'true' if entry else 'false'})"
        if entry is int:
            return f"arguments.IsInt({index})"
        if entry is float:
            want = self.declaration.wanted.get(index)
            # An int for what is declared a float is one, as in Python.
            if want is not None and float in want.plain and int not in want.plain:
                return f"(arguments.IsFloat({index}) || arguments.IsInt({index}))"
            return f"arguments.IsFloat({index})"
        if entry[0] == "array":
            return f"arguments.IsArray({index}, {dtype_name(entry[1])}, {entry[2]})"
        if entry[0] in ("list", "tuple"):
            items = [
                f"arguments.IsItem({index}, {item}, {dtype_name(one[1])}, {one[2]})"
                for item, one in enumerate(entry[1])
            ]
            return " &&\n        ".join([f"arguments.IsList({index}, {len(items)})", *items])
        value = entry[1]
        if type(value) is str:
            return f"arguments.IsText({index}, {text_literal(value)})"
        dtype = find_dtype(value)
        if dtype is None:
            raise refusal(
                self.name,
                f"its argument {name} is {spell(value)}, which is not a value of TVM-FFI: arrays, "
                "numbers, None, bool, str and element types are",
            )
        return f"arguments.IsDtype({index}, {dtype_name(dtype.number)})"

    def _is_default(self, name: str, entry: Entry) -> bool:
        if name not in self.declaration.defaults:
            return False
        default = self.declaration.defaults[name]
        if entry is int or entry is float:
            return type(default) is entry
        value = entry[1] if type(entry) is tuple and entry[0] == "value" else entry
        return type(value) is type(default) and bool(value == default)

    def _call(self, body: str, kind: Kind) -> str:
        values = ["outputs"]
        for index, (name, entry) in enumerate(zip(self.declaration.names, kind, strict=True)):
            if entry is int or entry is float:
                default = self.declaration.defaults.get(name)
                more = ""
                if type(default) is entry:
                    literal = (
                        ex.int_literal(default)
                        if type(default) is int
                        else ex.float_literal(float(default))
                    )
                    more = f", {literal}"
                values.append(f"arguments.{'Int' if entry is int else 'Float'}({index}{more})")
            elif type(entry) is tuple and entry[0] == "array":
                values.append(f"arguments.Array({index})")
            elif type(entry) is tuple and entry[0] in ("list", "tuple"):
                values += [f"arguments.Item({index}, {item})" for item in range(len(entry[1]))]
        return f"{body}({', '.join(values)})"


def _distinct(programs: Sequence[tuple[Kind, Tree]]) -> list[tuple[Kind, Tree]]:
    """Leave out kinds that a call through TVM-FFI cannot be told by; ints before floats."""
    chosen: dict[Any, tuple[Kind, Tree]] = {}
    for kind, tree in programs:
        if not tree.paths:
            continue
        # By their text: True and 1 are equal in Python, and are two kinds of calls.
        key = repr([_told(entry) for entry in kind])
        known = chosen.get(key)
        # Whether an array is read-only is not said: what is recorded of the others is stricter.
        if known is None or _read_only(known[0]) > _read_only(kind):
            chosen[key] = (kind, tree)
    # Test for int first: a declared float would also accept an int.
    return sorted(chosen.values(), key=lambda one: [entry is not int for entry in one[0]])


def _told(entry: Entry) -> Any:
    if type(entry) is tuple and entry[0] == "array":
        return entry[:3]
    if type(entry) is tuple and entry[0] in ("list", "tuple"):
        return ("list", [one[:3] for one in entry[1]])
    return entry


def _read_only(kind: Kind) -> int:
    return sum(type(entry) is tuple and entry[0] == "array" and bool(entry[3]) for entry in kind)


def _body_name(title: str, kind: Kind) -> str:
    """Return a name with the element types in it: ScaleFloat32."""
    words = [
        DTYPES[entry[1]].name.title().replace("_", "")
        for entry in kind
        if type(entry) is tuple and entry[0] == "array"
    ]
    return title + "".join(dict.fromkeys(words)) if words else f"{title}Numbers"
