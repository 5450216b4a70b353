"""Checks of inline code before a compilation, which takes seconds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from culaunch._inline.texts import InlineSource

_COMMENT_OR_TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL
)
_EMBEDS = re.compile(r"\b(?:CULAUNCH|TVM_FFI)_EMBED_CUBIN\s*\(\s*(\w+)\s*\)")
_USES = re.compile(
    r"\b(?:CULAUNCH_GET_KERNEL|CULAUNCH_GET_MODULE|CULAUNCH_DISPATCH_DTYPE|"
    r"TVM_FFI_EMBED_CUBIN_GET_KERNEL)\s*\(\s*(\w+)\s*[,)]"
)
_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)(?:\\\n|[^\n])*", re.MULTILINE)


def check_images(
    source: InlineSource, images: Iterable[str], link_flags: Sequence[str] = ()
) -> None:
    """Raise ValueError if the code uses an image that ``embed_cubin`` does not have.

    Only certain mistakes are reported: the preprocessor may leave code out, and an object among the
    linker's flags may contain the image.
    """
    # An object that is linked may have the image.
    if any(not flag.startswith("-") for flag in link_flags):
        return
    # Only certain mistakes are refused before the compiler runs; the linker reports the others.
    text = "\n".join(_plain(text) for text in (source.cpp, source.cuda) if text is not None)
    used = set(_EMBEDS.findall(text)) & set(_USES.findall(text))
    missing = sorted(used - set(images))
    if missing:
        raise ValueError(
            f"the code embeds {missing[0]!r}, but embed_cubin has no image with that name: give "
            f"embed_cubin={{{missing[0]!r}: image}}"
        )


def check_functions(
    source: InlineSource, functions: Iterable[str], includes: Sequence[object]
) -> None:
    """Raise ValueError for a function that is nowhere in the code, if all of it is known."""
    texts = [text for text in (source.cpp, source.cuda, *source.headers.values()) if text]
    # A macro can make a name, and a file of the user's have it.
    if includes or any("##" in text or re.search(r'#\s*include\s*"', text) for text in texts):
        return
    for name in functions:
        if not any(re.search(rf"\b{name}\b", text) for text in texts):
            raise ValueError(f"functions names {name!r}, but the code has no such function")


def hint_of_failure(said: str, images: Mapping[str, object]) -> str:
    """Return a hint for a compiler's or linker's message, or an empty text."""
    asked = re.search(
        r"undefined (?:reference to|hidden symbol|symbol).*?"
        r"(?:culaunch_image_|culaunch_size_|__tvm_ffi__cubin_)(\w+)",
        said,
    )
    if asked is not None and asked[1] not in images:
        return f"\nThe code embeds {asked[1]!r}, but embed_cubin has no image of that name."
    runtime = re.search(r"undefined (?:reference to|symbol).*?\b(cuda[A-Z]\w+)", said)
    if runtime is not None:
        return (
            f"\nThe code calls {runtime[1]} of the CUDA runtime, and the toolkit of cuda.h has no "
            "libcudart_static.a: python -m pip install nvidia-cuda-runtime, or name the library in "
            "link_flags."
        )
    # The unit is the file with only the exports; quotes depend on the language.
    missing = re.search(
        r"_unit\.\w+:\d+:\d+: error: (?:use of undeclared identifier )?\W(\w+)\W"
        r"(?= was not declared|$)",
        said,
        re.MULTILINE,
    )
    if missing is not None:
        return f"\nfunctions names {missing[1]!r}, and the code has no such function."
    return ""


def _plain(text: str) -> str:
    """Return the code that is always compiled: no comments, strings or conditional parts."""
    text = _COMMENT_OR_TEXT.sub('""', text)
    kept: list[str] = []
    depth = at = 0
    for directive in _DIRECTIVE.finditer(text):
        if depth == 0:
            kept.append(text[at : directive.start()])
        at = directive.end()
        depth += {"if": 1, "ifdef": 1, "ifndef": 1, "endif": -1}.get(directive[1], 0)
    return "\n".join(kept) + ("\n" + text[at:] if depth == 0 else "")
