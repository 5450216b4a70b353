"""Finds a kernel's name in the image from the names that people use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culaunch._base.similar import did_you_mean
from culaunch._errors import KernelNotFoundError
from culaunch._image import demangle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol

    from culaunch._image import Image

    class Kernels(Protocol):
        """An object that finds kernels by name: an image in the driver, or a library."""

        def layout(self, name: str, /) -> object | None:
            """Return None if no kernel has that name."""

        def kernel_names(self) -> tuple[str, ...]:
            """Return every name."""

    class Expressions(Protocol):
        """An object that knows the name expressions of a compilation, and their names."""

        @property
        def names(self) -> Mapping[str, str]: ...


_MOST_LISTED = 30
_CONST_FIRST = re.compile(r"(?:(?<=[<,(])|^)const (?=[\w:])")
_BUILT_IN = re.compile(r"(?:(?:unsigned|signed|long|short|volatile) )*[\w:]+")


def find_kernel(
    kernels: Kernels, expressions: Expressions, name: str, of: str = "the image"
) -> str:
    """Return the name in the image; raise KernelNotFoundError with a list of the kernels."""
    # From the fastest to the slowest way: the exact name, the compilation's name expressions in
    # another spelling, then all demangled names of the image.
    lowered = expressions.names.get(name, name)
    if kernels.layout(lowered) is not None:
        return lowered
    wanted = _normal(name)
    for expression, mapped in expressions.names.items():
        if _normal(expression) == wanted and kernels.layout(mapped) is not None:
            return mapped
    names = kernels.kernel_names()
    demangled = {candidate: demangle(candidate) for candidate in names}
    found = [
        candidate
        for candidate, text in demangled.items()
        if wanted in (_normal(text), _normal(without_parameters(text)))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        listed = "".join(f"\n  {demangled[one]}  ({one})" for one in found)
        raise KernelNotFoundError(
            f"{len(found)} kernels have the name {name!r}: add the parameters, or give the name "
            f"in {of}:{listed}"
        )
    # A name without angle brackets may be a template. Which instance is meant is not decided here.
    instances = {
        one: text
        for one, text in demangled.items()
        if _normal(without_parameters(text)).startswith(f"{wanted}<")
    }
    if instances:
        raise KernelNotFoundError(
            f"{name!r} is a template: give the name of an instance. {of} has{_listed(instances)}"
        )
    short = [without_parameters(text) for text in demangled.values()]
    raise KernelNotFoundError(
        f"{of} has no kernel {name!r}{_meant(name, [*short, *names])} has"
        f"{_listed(demangled) or ' no kernels at all'}"
    )


def find_variable(image: Image, name: str) -> str:
    """Return a variable's name in the image; raise KernelNotFoundError with the variables."""
    wanted = _normal(name.lstrip("& "))
    for expression, mapped in image.names.items():
        if _normal(expression.lstrip("& ")) == wanted:
            return mapped
    demangled = {one.name: one.demangled for one in image.variables}
    found = {
        one: text
        for one, text in demangled.items()
        if wanted.removeprefix("::") in (one, _normal(text))
    }
    if len(found) == 1:
        return next(iter(found))
    if found:
        raise KernelNotFoundError(
            f"{len(found)} variables have the name {name!r}: give the name in the "
            f"image:{_listed(found)}"
        )
    raise KernelNotFoundError(
        f"the module has no variable {name!r}{_meant(name, demangled.values())} has"
        f"{_listed(demangled) or ' no variables at all'}"
    )


def _meant(name: str, known: Iterable[str]) -> str:
    found = did_you_mean(name, known)
    return f"{found} It" if found else "; it"


def _listed(demangled: Mapping[str, str]) -> str:
    """Return lines with the common names and the names in the image."""
    listed = "".join(
        f"\n  {text}" + (f"  ({one})" if text != one else "")
        for one, text in list(demangled.items())[:_MOST_LISTED]
    )
    if len(demangled) > _MOST_LISTED:
        listed += f"\n  and {len(demangled) - _MOST_LISTED} more"
    return listed


def without_parameters(demangled: str) -> str:
    """Return ``ns::scale<float>`` for ``void ns::scale<float>(float*, int)``."""
    depth = 0
    # Search from the end, because parameters may be functions, and template arguments may contain
    # parentheses.
    for index in range(len(demangled) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(demangled[index], 0)
        if demangled[index] == "(" and depth == 0:
            demangled = demangled[:index]
            break
    # Demangled templates include their return type, which is void for every kernel.
    return demangled.removeprefix("void ")


def _normal(name: str) -> str:
    """Spell a name as the demangler does, without redundant spaces."""
    name = re.sub(r"\s+", " ", name.strip()).removeprefix("void ")
    name = re.sub(r"\s*([<>,()*&:])\s*", r"\1", name)
    while match := _CONST_FIRST.search(name):
        # The demangler writes "float const" for "const float". A zero byte marks a moved qualifier,
        # so the search does not find it again.
        end = _end_of_type(name, match.end())
        name = f"{name[: match.start()]}{name[match.end() : end]} \0{name[end:]}"
    name = name.replace("\0", "const")
    return re.sub(r"\s*([<>,()*&:])\s*", r"\1", name)


def _end_of_type(name: str, start: int) -> int:
    """Return the end of a type without pointers: after its words and template arguments."""
    match = _BUILT_IN.match(name, start)
    end = match.end() if match else start
    while name[end : end + 1] == "<":
        depth = 0
        for index in range(end, len(name)):
            depth += {"<": 1, ">": -1}.get(name[index], 0)
            if depth == 0:
                break
        else:
            return end
        rest = re.compile(r"[\w:]*").match(name, index + 1)
        end = rest.end() if rest else index + 1
    return end
