"""Saves functions as a library: their programs, and the images of the launched kernels."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.checks import checked_list
from culaunch._base.places import Place
from culaunch._base.values import spell
from culaunch._core import Kernel as CoreKernel
from culaunch._core import __version__
from culaunch._function import Function
from culaunch._function.calling.explain import conditions, explained
from culaunch._function.export.lowered import lowered
from culaunch._function.programs.encode import encode
from culaunch._function.tracing.results import is_dict_maker
from culaunch._image import Image
from culaunch._launch import Module
from culaunch._library import library_bytes
from culaunch._ship.functions.loaded_function import LoadedFunction
from culaunch._ship.manifest import entry as rules
from culaunch._ship.manifest.annotation import write_parameters
from culaunch._ship.manifest.kinds import write_kind
from culaunch._ship.manifest.texts import check_texts
from culaunch._ship.manifest.values import write_value
from culaunch._ship.saving.copied_entry import entry_of
from culaunch._ship.saving.kernels_to_save import checked_kernels, write_kernels
from culaunch._ship.saving.members import Members
from culaunch._ship.saving.merge import merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from culaunch._function.programs.program import Tree
    from culaunch._function.tracing.kinds import Kind
    from culaunch._launch import Kernel
    from culaunch._ship.libraries.saved_kernels import SavedKernels

    # Functions with the same name are parts of one function.
    _Given = dict[str, list[Function[..., Any]]]


def save(
    functions: Iterable[Function[..., Any]],
    path: str | os.PathLike[str],
    *,
    kernels: Iterable[Kernel | SavedKernels] | Mapping[str, Kernel] = (),
    images: Mapping[Module, Sequence[Image | str | os.PathLike[str] | bytes]] | None = None,
) -> None:
    """Write functions to a library: their traced programs, and the images that they launch.

    :func:`culaunch.ship.load_library` reads it without the source, a compiler or Triton. The
    library contains the kinds of arguments of earlier calls and of ``function.specialize(...)``,
    with the known paths.
    The same functions, traced in the same way, always give the same bytes.

    Parameters
    ----------
    functions : iterable of Function or LoadedFunction
        The functions must have different names. Include a function that computes gradients for
        another one. A function of another library may have a name that is already used if the two
        are the same function. Their kinds are then combined. If both have a program for one kind,
        each program serves the architectures of its images. This merges libraries that were saved
        on several machines.
    path : str or os.PathLike
        The library's path, by convention ``*.culib``. It is written whole or not at all.
    kernels : iterable of Kernel, or mapping of str to Kernel, optional
        Kernels to launch without a function. ``lib.kernels`` has them under their own names, or
        under the names in a mapping. Then there may be no functions. ``lib.kernels`` of another
        library is a valid mapping, also as an item of an iterable.
    images : mapping of Module to sequence of images, optional
        Further images with the same kernels as a module of these functions and kernels: cubins or
        PTX for other architectures. They go into one fatbin with the module's own image. A module
        that was loaded from a fatbin already has all of its architectures.

    Raises
    ------
    TypeError, ValueError
        If a function was never traced, or two different functions have one name. Also if a function
        contains something that a library cannot hold: a closed-over array, or a value of a custom
        class.

    Examples
    --------
    >>> result = scale(x, 2.0)
    >>> cl.ship.save([scale], "mylib.culib", kernels=[module["add"]])
    """
    from culaunch._base.checks import checked_path
    from culaunch._base.outputs import write_output

    target = checked_path("path", path)
    data = saved_bytes(functions, images, kernels)
    write_output(target, data, durable=True)


def saved_bytes(
    functions: Iterable[Function[..., Any]], images: Any = None, kernels: Any = ()
) -> bytes:
    """Return the library that :func:`culaunch.ship.save` writes."""
    given = _checked(functions)
    alone = checked_kernels(kernels)
    if not given and not alone:
        raise ValueError("functions must contain at least one function (got none)")
    members = Members(_checked_images(images))
    entries = []
    for name, own in given.items():
        parts = [_entry(one, given, members) for one in own]
        entries.append(parts[0] if len(parts) == 1 else merged(name, parts, members.archs))
    entries += write_kernels(alone, members)
    # Silently ignoring an image given for an unused module would hide a mistake.
    unused = [spell(module) for module in members.further if id(module) not in members.used]
    if unused:
        raise ValueError(
            f"each module in images must be one that a function or kernel uses (got {unused[0]})"
        )
    return library_bytes(
        entries, members.contents, f"culaunch {__version__}", version=rules.VERSION
    )


def _entry(function: Function[..., Any], given: _Given, members: Members) -> dict[str, Any]:
    """Return the manifest's entry of a function."""
    if isinstance(function, LoadedFunction):
        said = entry_of(function, members)
    else:
        said = _Traced(function, members).entry()
    name = function.__name__
    gradient = function._gradient  # noqa: SLF001 - users see backward() alone
    backward = None if gradient is None else gradient.function
    forward = None if gradient is None else gradient.forward
    return {
        "name": name, "kind": rules.KIND, **said,
        "backward": _other_function(function, backward, given),
        "forward": _other_function(function, forward, given),
    }  # fmt: skip


def _other_function(function: Function[..., Any], other: Any, given: _Given) -> str | None:
    if other is None:
        return None
    name = getattr(other, "__name__", "")
    if not any(one is other for one in given.get(name, ())):
        raise ValueError(
            f"{function.__name__} gets its gradients from {spell(other)}, which must be saved with "
            "it: make it a cl.function, and add it to functions"
        )
    return str(name)


class _Traced(NamedTuple):
    """A function with a body, and its entry."""

    function: Function[Any, Any]
    members: Members

    def entry(self) -> dict[str, Any]:
        function = self.function
        traced = function.traced()
        if not traced:
            raise ValueError(
                f"{function.__name__} must be traced before it is saved: call it, or name the "
                "kinds of its arguments with "
                f'{function.__name__}.specialize(x=cl.Array("float32", "n"), ...)'
            )
        kinds = [self._kind(kind, tree) for kind, tree in traced]
        return {
            "doc": function.__doc__,
            "parameters": write_parameters(function.declaration, self._value),
            "mutates": list(function.mutates),
            "may_mutate": list(function.may_mutate),
            # Sort by content, so programs that were traced alike are saved alike in any order.
            "kinds": sorted(kinds, key=lambda one: repr(one["arguments"])),
        }

    def _kind(self, kind: Kind, tree: Tree) -> dict[str, Any]:
        # Fused functions and Triton kernels become launches of images, because a library has no
        # compiler.
        tree = lowered(tree, kind)
        encoded = encode(tree)
        place = _Places(tree)
        texts = [place.shortened(text) for text in encoded.texts]
        try:
            check_texts(tree)
        except ValueError as error:
            raise ValueError(f"{self.function.__name__}: {error}") from None
        guards = [
            [block, place.shortened(str(where)), text]
            for block, where, text in conditions(self.function.declaration, tree)
        ]
        return {
            "arguments": self._arguments(kind),
            "program": self.members.program(encoded.words),
            "constants": [self._constant(one) for one in encoded.constants],
            "texts": texts,
            "writes": sorted(
                parameter for parameter, accesses in tree.uses.items() if "write" in accesses
            ),
            "guards": guards,
            "explanation": place.shortened(
                explained(self.function.declaration, kind, tree, unseen="not saved")
            ),
        }

    def _arguments(self, kind: Kind) -> list[Any]:
        for name, entry in zip(self.function.declaration.names, kind, strict=True):
            if type(entry) is tuple and entry[0] == "value":
                self._value(entry[1], f"argument {name}")
        return write_kind(kind)

    def _constant(self, value: Any) -> Any:
        name = self.function.__name__
        if isinstance(value, CoreKernel):
            # A Triton kernel has its own module type, with an ordinary image.
            module: Any = getattr(value, "module", None)
            if not isinstance(getattr(module, "image", None), Image):
                raise TypeError(
                    f"{name} launches {value.name}, but culaunch does not know its image: load it "
                    "with cl.load"
                )
            return {"kernel": {"image": self.members.image(module), "name": value.name}}
        if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            made = {"name": value.__name__, "fields": list(value._fields)}
            return {"namedtuple": made}
        if isinstance(value, functools.partial) and is_dict_maker(value):
            keys = [self._value(one, "a key of what it returns") for one in value.args[0]]
            return {"keys": keys}
        # Check this before callability, because some frameworks' arrays are callable.
        if hasattr(type(value), "__dlpack__") or hasattr(value, "__cuda_array_interface__"):
            raise TypeError(
                f"{name} closes over an array ({spell(value)}), which a library cannot hold: pass "
                "it as an argument"
            )
        if callable(value):
            raise TypeError(
                f"{name} calls {spell(value)}, which a library cannot hold: launch a kernel instead"
            )
        return self._value(value, "a constant")

    def _value(self, value: Any, what: str) -> Any:
        try:
            return write_value(value)
        except TypeError as error:
            raise TypeError(f"{self.function.__name__}: {what} cannot be saved: {error}") from None


class _Places:
    """The files of a tree's places, written without their directories."""

    def __init__(self, tree: Tree) -> None:
        files = set()
        for node in tree.nodes():
            found = [step.text for step in node.steps]
            if node.guard is not None:
                found.append(node.guard.place)
            if node.leaf is not None:
                found += [getattr(effect, "place", None) for effect in node.leaf.effects]
            files |= {one.file for one in found if isinstance(one, Place)}
        # Longest first, because one path may be a suffix of another.
        self._files = sorted(files, key=lambda one: (-len(one), one))

    def shortened(self, text: str) -> str:
        for file in self._files:
            text = text.replace(f"{file}:", f"{os.path.basename(file)}:")
        return text


def _checked(functions: Any) -> _Given:
    found: _Given = {}
    for function in checked_list("functions", functions, "functions"):
        if not isinstance(function, Function):
            raise TypeError(
                "functions must contain functions of cl.function or of a library (got "
                f"{spell(function)})"
            )
        name = function.__name__
        if not rules.is_function_name(name):
            raise ValueError(
                f"functions contains one with the name {name!r}. In a library a name must consist "
                "of ASCII letters, digits and _, and not begin with _. It must not be a Python "
                f"keyword or one of {', '.join(sorted(rules.RESERVED))}"
            )
        known = found.setdefault(name, [])
        if any(one is function for one in known):
            continue
        if not any(isinstance(one, LoadedFunction) for one in (*known, function)) and known:
            raise ValueError(
                f"functions must not contain two functions with the name {name}: rename one"
            )
        known.append(function)
    return found


def _checked_images(images: Any) -> dict[Module, list[Image]]:
    found = {}
    for module, more in dict(images or {}).items():
        if not isinstance(module, Module):
            raise TypeError(f"the keys of images must be modules (got {spell(module)})")
        found[module] = [Image.open(one) for one in checked_list("images", more, "images")]
    return found
