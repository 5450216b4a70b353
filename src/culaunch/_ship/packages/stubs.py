"""The types of a library's functions, for type checkers and editors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._function.declarations.declaration import POSITIONAL_ONLY
from culaunch._ship.packages.returns import Returns, union

if TYPE_CHECKING:
    from culaunch._ship.functions.loaded_function import LoadedFunction
    from culaunch._ship.libraries.library import Library

_HEAD = """\
from typing import Any, Protocol, TypeVar
{imports}
class _SupportsDLPack(Protocol):
    def __dlpack__(self, *args: Any, **keywords: Any) -> Any: ...

# The arrays of a call and its results belong to the same framework.
_Array = TypeVar("_Array", bound=_SupportsDLPack)

__version__: str
"""

# The array type that a call without arrays allocates.
_OWN_ARRAY = "_culaunch.DeviceArray"


def stub_text(library: Library) -> str:
    """Return the ``.pyi`` of a package with a library's functions.

    Raise ImageError if the library contains an invalid program.
    """
    functions = [_function(library, one) for one in library]
    imports = (
        "\nimport culaunch as _culaunch\n" if any(_OWN_ARRAY in one for one in functions) else ""
    )
    return "\n".join([_HEAD.format(imports=imports), *functions])


def _function(library: Library, function: LoadedFunction) -> str:
    declaration = function.declaration
    kinds = function.entry.kinds
    types = [
        union(sorted({_argument(one.kind[i]) for one in kinds}, key=_order))
        for i in range(len(declaration.names))
    ]
    words = []
    passed = [how for _, how in declaration.parameters]
    for index, (name, how) in enumerate(declaration.parameters):
        if declaration.keyword_only[:1] == (name,):
            words.append("*")
        default = ""
        if name in declaration.defaults:
            default = f" = {_default(declaration.defaults[name])}"
        words.append(f"{name}: {types[index]}{default}")
        if how == POSITIONAL_ONLY and passed[index + 1 : index + 2] != [POSITIONAL_ONLY]:
            words.append("/")
    # A type variable that no parameter uses could not be solved.
    has_arrays = any("_Array" in one for one in types)
    array = "_Array" if has_arrays else _OWN_ARRAY
    returns = Returns(array, _argument)
    found = [
        text for one in kinds for text in returns.of(one, library.read(one.program), library.source)
    ]
    head = f"def {declaration.name}({', '.join(words)}) -> {union(found)}:"
    return f"{head}\n{_doc(function.__doc__)}"


def _argument(entry: Any) -> str:
    """Return the type of an argument of a kind."""
    if entry is None:
        return "None"
    if type(entry) is bool:
        return "bool"
    if isinstance(entry, type):
        return entry.__name__
    if entry[0] == "array":
        return "_Array"
    if entry[0] == "value":
        return "str" if isinstance(entry[1], str) else "Any"
    return "list[_Array]" if entry[0] == "list" else "tuple[_Array, ...]"


def _order(text: str) -> tuple[bool, str]:
    return text == "None", text


def _default(value: Any) -> str:
    return repr(value) if value is None or type(value) in (bool, int, str) else "..."


def _doc(doc: str | None) -> str:
    if not doc:
        return "    ...\n"
    if not all(one.isprintable() or one in "\n\t" for one in doc):
        return f"    {doc!r}\n    ...\n"
    text = doc.replace("\\", "\\\\").replace('"', '\\"')
    return f'    """{text}"""\n    ...\n'
