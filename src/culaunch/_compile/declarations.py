"""Parameter types of a kernel as its source declares them, where that is beyond doubt.

Only built-in types, CUDA's own, and pointers to them are understood. Anything else, a macro or two
declarations that differ are left to the compiler.
"""

from __future__ import annotations

import re

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_TOKEN = re.compile(r"\w+|\S")
_DROPPED = {"__restrict__", "__restrict", "__grid_constant__"}
_ALIASES = {
    "half": "__half",
    "half2": "__half2",
    "nv_bfloat16": "__nv_bfloat16",
    "nv_bfloat162": "__nv_bfloat162",
    "int8_t": "signed char",
    "uint8_t": "unsigned char",
    "int16_t": "short",
    "uint16_t": "unsigned short",
    "int32_t": "int",
    "uint32_t": "unsigned int",
    "int64_t": "long",
    "uint64_t": "unsigned long",
    "size_t": "unsigned long",
}
_OWN = re.compile(
    r"__half2?|__nv_bfloat162?|(?:u?(?:char|short|int|long|longlong)|float|double)[1-4]"
)
# By how often each word is there: (unsigned, signed, char, short, long, int).
_INTEGERS = {
    (0, 0, 1, 0, 0, 0): "char",
    (0, 1, 1, 0, 0, 0): "signed char",
    (1, 0, 1, 0, 0, 0): "unsigned char",
    **{(0, s, 0, 1, 0, i): "short" for s in (0, 1) for i in (0, 1)},
    **{(1, 0, 0, 1, 0, i): "unsigned short" for i in (0, 1)},
    **{(0, s, 0, 0, 0, i): "int" for s in (0, 1) for i in (0, 1) if s or i},
    **{(1, 0, 0, 0, 0, i): "unsigned int" for i in (0, 1)},
    **{(0, s, 0, 0, 1, i): "long" for s in (0, 1) for i in (0, 1)},
    **{(1, 0, 0, 0, 1, i): "unsigned long" for i in (0, 1)},
    **{(0, s, 0, 0, 2, i): "long long" for s in (0, 1) for i in (0, 1)},
    **{(1, 0, 0, 0, 2, i): "unsigned long long" for i in (0, 1)},
}
_WORDS = ("unsigned", "signed", "char", "short", "long", "int")


def declared_types(source: str, kernel: str) -> tuple[str, ...] | None:
    """Return the parameter types of a kernel, or None where the source leaves a doubt.

    Parameters
    ----------
    source : str
        The source, not preprocessed.
    kernel : str
        The kernel's name.
    """
    text = _COMMENT.sub(" ", source)
    head = re.compile(
        rf"__global__\b(?:[^;{{}}()]|__launch_bounds__\s*\([^()]*\))*\b{re.escape(kernel)}\s*\("
        rf"(?P<params>[^(){{}};]*)\)"
    )
    # A kernel may be declared several times. Two declarations that differ are overloads, or
    # branches of an #if: which one was compiled is not known here.
    found = {match["params"] for match in head.finditer(text)}
    if len(found) != 1:
        return None
    params = found.pop().strip()
    if params in ("", "void"):
        return ()
    # A macro among the types could stand for anything.
    if set(_DEFINE.findall(text)) & set(_TOKEN.findall(params)):
        return None
    types = [_type(_TOKEN.findall(param)) for param in params.split(",")]
    return tuple(kind for kind in types if kind is not None) if None not in types else None


def _type(tokens: list[str]) -> str | None:
    """Return the type of ``const float* __restrict__ x`` as a mangled name would spell it."""
    tokens = [token for token in tokens if token not in _DROPPED]
    stars = tokens.count("*")
    first = tokens.index("*") if stars else len(tokens)
    base, rest = tokens[:first], tokens[first:]
    # Behind the stars only a name may come, and a const of the parameter itself.
    if [word for word in rest[stars:] if word != "const"][1:] or "*" in rest[stars:]:
        return None
    constant = "const" in base
    words = [word for word in base if word != "const"]
    kind = _base(words)
    if kind is None and not stars and len(words) > 1:
        # Without stars the last word may be the parameter's name.
        kind = _base(words[:-1])
    if kind is None or (kind == "void" and not stars):
        return None
    return ("const " if constant and stars else "") + kind + "*" * stars


def _base(words: list[str]) -> str | None:
    if len(words) == 1:
        word = words[0]
        if word in ("float", "double", "bool", "void") or _OWN.fullmatch(word):
            return word
        if word in _ALIASES:
            return _ALIASES[word]
    if all(word in _WORDS for word in words):
        return _INTEGERS.get(tuple(words.count(word) for word in _WORDS))  # type: ignore[arg-type]
    return None
