"""The texts that inline code is compiled from."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from culaunch._base.checks import checked_list, checked_path, is_text
from culaunch._base.compiler_files import write_text
from culaunch._base.values import spell

_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# The last word of a parameter without a name may be one of these.
_TYPE_WORDS = ("bool", "char", "const", "double", "float", "int", "long", "short", "unsigned")
# The user's text is a separate file, to show its original lines in a compiler's messages.
UNIT = """\
#include <culaunch/culaunch.h>
#include <culaunch/tvm_ffi.h>
#include "{file}"
{exports}"""


@dataclass(frozen=True)
class InlineSource:
    """The user's texts, and the lines that export functions from them."""

    name: str
    cpp: str | None
    cuda: str | None
    exports: str
    headers: Mapping[str, str]

    @classmethod
    def of(
        cls,
        name: str,
        cpp_sources: str | Sequence[str] | None,
        cuda_sources: str | Sequence[str] | None,
        functions: str | Sequence[str] | Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
    ) -> InlineSource:
        """Check the arguments of ``load_inline`` and put the units together."""
        cpp, cuda = _joined("cpp_sources", cpp_sources), _joined("cuda_sources", cuda_sources)
        if cpp is None and cuda is None:
            raise ValueError("give cpp_sources, cuda_sources or both")
        for header, text in _mapping("headers", headers).items():
            if not isinstance(header, str) or not isinstance(text, str):
                raise TypeError(f"headers must map names to text (got {spell(header)})")
            if not is_text(header) or not is_text(text):
                raise ValueError(f"headers[{header!r:.100}] is not text")
            if os.path.isabs(header) or ".." in header.split("/") or not header:
                raise ValueError(
                    f"a name in headers must be a relative path without '..' (got {spell(header)})"
                )
        # If both are given, the functions that Python calls are in the C++ text.
        code = cpp if cpp is not None else cuda or ""
        return cls(name, cpp, cuda, _exports(functions, code), dict(headers or {}))

    def identity(self) -> list[str]:
        """Return the identity of these texts."""
        texts = [self.cpp, self.cuda, self.exports, sorted(self.headers.items())]
        return [self.name, json.dumps(texts)]

    def write(self, directory: str) -> tuple[str | None, str | None]:
        """Write all texts below `directory`; return the names of the units."""
        for header, content in self.headers.items():
            path = os.path.join(directory, "include", header)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_text(path, content)
        # The exports go into the text with the functions: the C++ text if there is one, as in
        # TVM-FFI.
        units = (
            (self.cpp, "cpp", self.exports),
            (self.cuda, "cu", self.exports if self.cpp is None else ""),
        )
        paths: list[str | None] = [None, None]
        for i, (text, suffix, exports) in enumerate(units):
            if text is not None:
                file = f"{self.name}.{suffix}"
                write_text(os.path.join(directory, file), text)
                path = os.path.join(directory, f"{self.name}_unit.{suffix}")
                write_text(path, UNIT.format(file=file, exports=exports))
                paths[i] = path
        return paths[0], paths[1]


def _joined(argument: str, sources: str | Sequence[str] | None) -> str | None:
    if sources is None:
        return None
    texts = [sources] if isinstance(sources, str) else checked_list(argument, sources, "C++ texts")
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(
                f"{argument} must be C++ source text, or a list of texts (got "
                f"{type(text).__name__}); "
                "read a file with Path.read_text()"
            )
        if not is_text(text):
            raise ValueError(f"{argument} is not text: it has a null byte or a lone surrogate")
    return "\n".join(texts) if texts else None


def names_of(functions: str | Sequence[str] | Mapping[str, str] | None) -> list[str]:
    """Return the names in ``functions``, which may have several forms."""
    if functions is None:
        return []
    if isinstance(functions, str):
        return [functions]
    if isinstance(functions, Mapping):
        return list(functions)
    return [_function_name(name) for name in checked_list("functions", functions, "names")]


def _exports(functions: str | Sequence[str] | Mapping[str, str] | None, code: str) -> str:
    documented = (
        functions if isinstance(functions, Mapping) else dict.fromkeys(names_of(functions), "")
    )
    if not documented:
        return ""
    lines = []
    for function, text in documented.items():
        if not isinstance(function, str) or not _FUNCTION.match(function):
            raise ValueError(
                f"functions must be names of C++ functions (got {spell(function)}); to export one "
                "under another name use CULAUNCH_EXPORT(name, function) in the code"
            )
        if not isinstance(text, str) or not is_text(text):
            raise TypeError(
                f"functions maps {function} to its docstring, a str (got {spell(text)})"
            )
        # JSON's escapes are also C++'s, except those of surrogates.
        words = [function, function, json.dumps(parameter_names(code, function))]
        words += [json.dumps(text, ensure_ascii=False)] if text else []
        lines.append(f"CULAUNCH_EXPORT({', '.join(words)});")
    return "\n".join([*lines, ""])


def parameter_names(code: str, function: str) -> str:
    """Return the names in a function's definition: "y, x, n"; "" if that is not plain."""
    # A definition with its body: a declaration may use other parameter names. A function with
    # unusual syntax gets only positional arguments.
    found = re.search(
        rf"\b{function}\s*\(([^(){{}};]*)\)\s*(?:noexcept\s*)?(?:->[^;{{]*)?\{{", code
    )
    if found is None or "<" in found[1].replace("<int64_t>", "") or "//" in found[1]:
        return ""
    names = []
    for parameter in found[1].split(",") if found[1].strip() else []:
        name = re.search(r"[\w&*>:]\s+[&*]*([A-Za-z_]\w*)\s*(?:\[\w*\]\s*)?$", parameter)
        if name is None or name[1] in _TYPE_WORDS:
            return ""
        names.append(name[1])
    return ", ".join(names)


def including(sources: object) -> tuple[str | None, str | None]:
    """Return C++ and CUDA C++ texts that include the files from their directories."""
    one = isinstance(sources, (str, os.PathLike))
    files = [sources] if one else checked_list("sources", sources, "paths")
    texts: tuple[list[str], list[str]] = ([], [])
    for file in files:
        path = os.path.abspath(os.fsdecode(checked_path("sources", file)))
        if not os.path.isfile(path):
            raise FileNotFoundError(f"the source {path} does not exist")
        if any(character in path for character in '"\\\n'):
            raise ValueError(f"a path in sources cannot be included (got {path!r})")
        texts[path.endswith(".cu")].append(f'#include "{path}"\n')
    if not files:
        raise ValueError("sources must name at least one file (got none)")
    cpp, cuda = ("".join(lines) or None for lines in texts)
    return cpp, cuda


def _mapping(argument: str, value: object) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{argument} must be a mapping (got {spell(value)})")
    return value


def _function_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"functions must be names of C++ functions (got {spell(name)})")
    return name
