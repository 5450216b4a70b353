"""A library's functions and kernels, by name; images are loaded when a call needs them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_text
from culaunch._base.fork_lock import ForkLock
from culaunch._base.similar import did_you_mean
from culaunch._errors import CulaunchError, ImageError
from culaunch._launch import Module
from culaunch._library import LibraryFile
from culaunch._ship.functions.loaded_function import LoadedFunction
from culaunch._ship.libraries import saved_kernels
from culaunch._ship.libraries.saved_kernels import SavedKernel, SavedKernels, facts_of
from culaunch._ship.manifest.entry import FIRST_VERSION, KIND, MOST_FUNCTIONS, read_entry

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from culaunch._launch import Kernel


class Library:
    """The functions of a library: ``lib.scale(x, 2.0)``, or ``lib["scale"]``.

    Nothing is loaded into the driver before a call needs it. A call then loads only the images of
    its program.

    Attributes
    ----------
    source : str
        The file that the library was read from.
    functions : Mapping[str, LoadedFunction]
        The functions by name, in the order in which they were saved.
    kernels : SavedKernels
        The kernels that were saved beside the functions: ``lib.kernels["scale<float>"]``. They are
        found by every name that ``module[name]`` accepts.

    Examples
    --------
    >>> result = scale(x, 2.0)
    >>> cl.ship.save([scale], "mylib.culib")
    >>> library = cl.ship.load_library("mylib.culib")
    >>> library.scale(x, 3.0).numpy()[:3]
    array([3., 3., 3.], dtype=float32)
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        file = LibraryFile(source)
        self._members = file.members
        self.source = file.source
        self._is_bytes = isinstance(source, bytes)
        self._lock = ForkLock()
        self._modules: dict[str, Module] = {}
        manifest = file.manifest
        entries = [one for one in manifest["functions"] if one["kind"] == KIND]
        # In an older file, this kind of entry is another program's extension of the format.
        if manifest["version"] < FIRST_VERSION:  # before it, nothing was said of this kind
            entries = []
        if len(entries) > MOST_FUNCTIONS:
            raise ImageError(
                f"the manifest must have at most {MOST_FUNCTIONS} functions", source=self.source
            )
        found: dict[str, LoadedFunction] = {}
        for one in entries:
            entry = read_entry(one, manifest["members"], self.source)
            if entry.name in found:
                raise ImageError(
                    f"the function {entry.name} must not appear twice", source=self.source
                )
            try:
                found[entry.name] = LoadedFunction(self, entry)
            except ValueError as error:
                raise ImageError(
                    f"the manifest's entry of {entry.name!r:.60} is invalid: {error}",
                    source=self.source,
                ) from None
        self.functions: Mapping[str, LoadedFunction] = MappingProxyType(found)
        self._saved_kernels = self._read_kernels(manifest)
        self.kernels = SavedKernels(self, self._saved_kernels)
        self._check_backward()

    def __getitem__(self, name: str) -> LoadedFunction:
        """Find a function.

        Raises
        ------
        KeyError
            If there is none of that name; the message has those that there are.
        """
        checked_text("name", name, "a str, the name of a function")
        function = self.functions.get(name)
        if function is None:
            raise KeyError(self._missing(name))
        return function

    def __getattr__(self, name: str) -> LoadedFunction:
        # Python's protocols look up many private names, which no function has.
        if name.startswith("_"):
            raise AttributeError(name)
        function = self.functions.get(name)
        if function is None:
            raise AttributeError(self._missing(name))
        return function

    def __contains__(self, name: object) -> bool:
        return name in self.functions

    def __iter__(self) -> Iterator[LoadedFunction]:
        return iter(self.functions.values())

    def __len__(self) -> int:
        return len(self.functions)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.functions})

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.functions)

    def __str__(self) -> str:
        """Return the functions with their signatures, and the kinds of arguments they take."""
        lines = [f"{self.source}: library"]
        for one in self:
            lines += ["", *str(one).split("\n")]
            if one.__doc__:
                lines.append(f"    {one.__doc__.strip().splitlines()[0]}")
            lines += [f"    for {kind}" for kind in one.kinds]
        if self.kernels:
            lines += ["", "kernels"]
            lines += [f"    {one.shown()}" for one in self._saved_kernels.values()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the output of ``culaunch inspect --json``.

        Returns
        -------
        dict
            The path, the functions and the kernels of the library.
        """
        return {
            "path": self.source,
            "format": "culib",
            "functions": [
                {
                    "name": one.__name__,
                    "kind": KIND,
                    "signature": str(one).partition("\n")[0],
                    "doc": one.__doc__,
                    "mutates": list(one.mutates),
                    "may_mutate": list(one.may_mutate),
                    "kinds": list(one.kinds),
                }
                for one in self
            ],
            "kernels": [one.to_dict() for one in self._saved_kernels.values()],
        }

    def __repr__(self) -> str:
        names = [*self.functions, *self.kernels]
        return f"<culaunch.ship.Library {self.source}: {', '.join(names) or 'no functions'}>"

    def __reduce__(self) -> Any:
        if self._is_bytes:
            raise TypeError("a library of bytes cannot be pickled: pickle the bytes")
        return load_library, (self.source,)

    # ---- called by its functions

    def read(self, member: str) -> bytes:
        """Return a member, checked against the manifest.

        Parameters
        ----------
        member : str
            The name of the member.

        Returns
        -------
        bytes
            Its contents.
        """
        return self._members(member)

    def kernel(self, member: str, name: str, signature: str | None = None) -> Kernel:
        """Return a kernel of an image, and load the image if necessary.

        Parameters
        ----------
        member : str
            The name of the image in the library.
        name : str
            The name of the kernel in the image.
        signature : str, optional
            C type names. By default the image supplies the signature.

        Returns
        -------
        Kernel
            The kernel.

        Raises
        ------
        ImageError
            If the image is invalid, or does not have this kernel.
        DriverError
            If the driver refuses the image.
        """
        # Load each image as one module for all functions and threads, because kernels of one module
        # share its variables.
        with self._lock:
            module = self._modules.get(member)
            if module is None:
                names, signatures = facts_of(self._saved_kernels, member)
                image = self._members.image(member, names=names, signatures=signatures)
                module = self._modules[member] = Module(image)
        try:
            kernel = module.kernel(name, signature=signature)
        except (CulaunchError, ValueError) as error:
            raise ImageError(str(error), source=f"{self.source}:{member}") from None
        # A C++ name finds its mangled form, but a manifest contains the mangled form itself.
        if kernel.name != name:
            raise ImageError(f"there is no kernel {name}", source=f"{self.source}:{member}")
        return kernel

    def _read_kernels(self, manifest: dict[str, Any]) -> dict[str, SavedKernel]:
        entries = [one for one in manifest["functions"] if one["kind"] == saved_kernels.KIND]
        if manifest["version"] < saved_kernels.FIRST_VERSION:
            entries = []
        if len(entries) > saved_kernels.MOST_KERNELS:
            raise ImageError(
                f"the manifest must have at most {saved_kernels.MOST_KERNELS} kernels",
                source=self.source,
            )
        found: dict[str, SavedKernel] = {}
        for one in entries:
            entry = saved_kernels.read_kernel(one, manifest["members"], self.source)
            if entry.name in found:
                raise ImageError(
                    f"the kernel {entry.name!r:.60} must not appear twice", source=self.source
                )
            found[entry.name] = entry
        return found

    def _missing(self, name: str) -> str:
        have = ", ".join(self.functions) or "none"
        return (
            f"{self.source} has no function {name!r}{did_you_mean(name, self.functions)}: it has "
            f"{have}"
        )

    def _check_backward(self) -> None:
        try:
            for one in self:
                one.require_backward()
        except (KeyError, ValueError, TypeError) as error:
            raise ImageError(f"the gradients are invalid: {error}", source=self.source) from None


def load_library(source: str | os.PathLike[str] | bytes) -> Library:
    """Read the functions of a library that :func:`culaunch.ship.save` wrote.

    It needs none of the source, no compiler, no Triton and no framework, and no GPU before a call.

    Parameters
    ----------
    source : str, os.PathLike or bytes
        A ``.culib`` file, or its bytes.

    Returns
    -------
    Library
        The library, a mapping of names to functions.

    Raises
    ------
    ImageError
        If it is not a library, is damaged, or has a newer version.
    OSError
        If the file is not there or cannot be read.

    Examples
    --------
    >>> result = scale(x, 2.0)
    >>> cl.ship.save([scale], "mylib.culib")
    >>> cl.ship.load_library("mylib.culib").scale(x, 3.0).numpy()[:3]
    array([3., 3., 3.], dtype=float32)
    """
    return Library(source)
