"""What cuda.h and cudaTypedefs.h declare, as text: the functions, their forms, their parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Types of parameters whose values are numbers; every other type without a star is a handle.
_NUMBERS = {
    "int": "i", "unsigned int": "u", "unsigned char": "b", "unsigned short": "h", "size_t": "z",
    "unsigned long long": "q", "cuuint64_t": "q", "cuuint32_t": "u", "CUdevice": "i",
    "CUdeviceptr": "q", "CUdeviceptr_v1": "u", "CUdevice_v1": "i", "float": "f",
    "CUmemGenericAllocationHandle": "q", "CUtexObject": "q", "CUsurfObject": "q",
    "CUgraphConditionalHandle": "q", "CUkernelNodeAttrID": "i", "dim3": "d", "cudaError_t": "i",
    "cudaExtent": "e", "cudaTextureObject_t": "q", "cudaSurfaceObject_t": "q",
}  # fmt: skip


class Declarations:
    """The functions of cuda.h: exported name -> the types of its parameters.

    Parameters
    ----------
    include : Path
        The folder of cuda.h.
    header : str, optional
        The header: cuda.h, or the runtime's.
    """

    def __init__(self, include: Path, header: str = "cuda.h") -> None:
        text = re.sub(r"/\*.*?\*/", "", (include / header).read_text(), flags=re.DOTALL)
        self._enums = set(re.findall(r"^typedef enum (\w+)_enum", text, re.MULTILINE))
        self._enums |= set(re.findall(r"\}\s*(CU\w+)\s*;", text)) & set(
            re.findall(r"typedef enum[^{]*\{[^}]*\}\s*(CU\w+)", text)
        )
        declared: dict[str, list[str]] = {}
        for name, parameters in re.findall(
            r"(?:CUresult\s+CUDAAPI|CUDARTAPI(?:_CDECL)?)\s+(cu\w+)\s*\(([^;]*?)\)\s*;", text
        ):
            declared.setdefault(name, []).append(" ".join(parameters.split()))
        renamed = re.findall(
            r"#\s*define\s+(cu[a-zA-Z]\w+)\s+(?:__CUDA(?:RT)?_API_(PTDS|PTSZ)\()?(cu[a-zA-Z]\w+)\)?",
            text,
        )
        self.forms: dict[str, str | None] = {name: forms[0] for name, forms in declared.items()}
        for plain, suffix, name in renamed:
            if plain not in declared:
                if plain in self.forms:
                    self.forms[name] = self.forms[plain]
                continue
            self.forms[name] = declared[plain][0]
            if suffix:
                self.forms[f"{name}_{suffix.lower()}"] = declared[plain][0]
            if name != plain:
                # The older form is declared last, or not at all.
                forms = declared[plain]
                self.forms[plain] = forms[-1] if len(forms) > 1 else None
        typedefs = (include / "cudaTypedefs.h").read_text()
        self.versions: dict[str, list[int]] = {}
        for name, version in re.findall(r"\*PFN_(cu\w+?)_v(\d+)\)", typedefs):
            self.versions.setdefault(name, []).append(int(version))

    def words(self, name: str) -> tuple[str, ...] | None:
        """Return the parameters of a form, in the emulator's words; None if it is not declared."""
        parameters = self.forms[name]
        if parameters is None:
            return None
        split = [one.strip() for one in parameters.split(",")]
        # A default value of C++ is no part of a type.
        split = [re.sub(r"\s*(=|__dv\().*$", "", one) for one in split]
        return tuple(self._word(one) for one in split if one != "void")

    def is_old(self, name: str) -> bool:
        """Say whether a form has a structure or an address of CUDA 3 or before."""
        return "_v1" in (self.forms[name] or "_v1")

    def _word(self, parameter: str) -> str:
        is_enum = re.search(r"\benum\b", parameter) is not None
        parameter = re.sub(r"\b(const|struct|enum)\b", " ", parameter)
        if found := re.search(r"\[\w*\]", parameter):
            parameter = parameter.replace(found[0], "").replace(" ", " *", 1)
        stars = parameter.count("*")
        words = parameter.replace("*", " ").split()
        kind = " ".join(words[:-1]) if len(words) > 1 and words[-1] != "int" else words[0]
        if kind == "char" and stars == 1:
            return "s"
        base = _NUMBERS.get(kind, "i" if is_enum or kind in self._enums else "p")
        if kind == "void":
            return "*" * (stars - 1) + "p"
        return "*" * stars + base


def agree(method: tuple[str, ...], declared: tuple[str, ...]) -> bool:
    """Say whether a method can be called with the parameters of a form; it may skip the last.

    A number has a size, and a pointer the size of the number that it points to, or any.
    """
    if len(method) > len(declared):
        return False
    return all(_agree(one, other) for one, other in zip(method, declared, strict=False))


def _agree(one: str, other: str) -> bool:
    sizes = [_size(word) for word in (one, other)]
    if "p" in sizes:  # a pointer to anything, or a handle; an address may be a number
        return all(word == "s" or word[0] in "*pqz" for word in (one, other))
    return sizes[0] == sizes[1]


def _size(word: str) -> str:
    kind = {"i": "4", "u": "4", "z": "8", "q": "8"}.get(word[-1], word[-1])
    return kind if not word.startswith("*") else "p" if kind in "ps" else f"*{kind}"
