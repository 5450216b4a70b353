"""``KernelSet``: compiled forms of a Triton kernel, launched and saved without Triton."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_flag, checked_text
from culaunch._base.values import counted
from culaunch._core import __version__
from culaunch._errors import ImageError, KernelNotFoundError
from culaunch._launch.devices.device import Device
from culaunch._launch.launches.compiled_regions import in_regions
from culaunch._library import LibraryFile, write_library
from culaunch._triton.saved.choice import tensor_types
from culaunch._triton.saved.configurations import KeptConfigs, configs_of, table_of, table_of_kept
from culaunch._triton.saved.join_variants import merge_sets
from culaunch._triton.saved.manifest import KIND, read_entry, version_of, write_entry
from culaunch._triton.saved.set import SavedSet
from culaunch._triton.saved.set_dispatch import SetDispatcher

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from typing_extensions import Self

    from culaunch._triton.calls.parameters import TritonParameter
    from culaunch._triton.saved.grid import SavedGrid
    from culaunch._triton.saved.tuned_table import TunedTable
    from culaunch._triton.saved.variant import SavedVariant


class KernelSet(SetDispatcher):
    """Variants of one Triton kernel, compiled or loaded from a file.

    :func:`culaunch.triton.compile` makes one, and :meth:`load` reads one.

    Call ``kernels[grid](*args, **kwargs)`` as through Triton. The architecture, the element types,
    divisibility by 16, values of 1, None, and the constants select the variant. The most
    specialized variant that fits is used, the first one among equals. Images are loaded when they
    are first needed. If the set was compiled with a grid, call it without one: ``kernels(*args)``.

    A constant that the call omits may have any value, with two exceptions. The set computes a
    constant of ``@triton.heuristics`` like the heuristic does; it is an error if the heuristic
    could not be saved. A constant that a heuristic reads must be given: without it, the heuristic
    raises a `TypeError`.

    Parameters
    ----------
    saved : SavedSet
        The contents of the set.

    Attributes
    ----------
    name : str
    parameters : tuple of TritonParameter
    variants : tuple of SavedVariant
    zeroes : tuple of str
        The arguments that are set to zero before each launch, as a ``pre_hook`` did.
    blocks : tuple of str
        The tensor descriptors whose blocks are set before each launch, as a ``pre_hook`` did.

    Examples
    --------
    >>> from culaunch import triton
    >>> from kernels import SIGNATURE, scale
    >>> kernels = triton.compile(
    ...     scale, SIGNATURE, arch="sm_80", configs=[{"BLOCK": 128}], keep_ptx=True
    ... )
    >>> kernels.save("scale.culib")
    >>> triton.KernelSet.load("scale.culib")[(2,)](x, y, 3.0, 256, BLOCK=128)
    >>> y.numpy()[:3].tolist()
    [3.0, 3.0, 3.0]
    """

    variants: tuple[SavedVariant, ...]
    parameters: tuple[TritonParameter, ...]
    zeroes: tuple[str, ...]
    blocks: tuple[str, ...]

    def __new__(cls, saved: SavedSet) -> Self:
        """Make one."""
        self = super().__new__(cls, saved)
        self.parameters = saved.parameters
        self.variants = saved.variants
        self.zeroes = saved.zeroes
        self.blocks = saved.blocks
        return self

    # ---- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the set as a library (``.culib``), whole or not at all.

        Parameters
        ----------
        path : str or os.PathLike
            The file.
        """
        # Omit images that no variant names.
        used = [name for one in self.variants for name in (one.image, one.ptx) if name]
        members = {name: self._saved.read(name) for name in used}
        producer = f"culaunch {__version__}"
        write_library(path, [self.to_manifest()], members, producer, version_of(self._saved))

    def write_c(
        self,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        prefix: str = "",
        as_object: bool = False,
        machine: str | None = None,
    ) -> list[Path]:
        """Write the set as C: a source at ``path`` (``.c`` is added), and a header beside it.

        The source contains the images. It needs only ``cuda.h``, the driver and a C99 compiler. It
        chooses a variant as here: it computes the saved heuristics and the grid, and a tuned table
        becomes a function that chooses a configuration. The declarations in the header depend on
        the kernel and on its arguments' types, not on the variants. More variants do not change its
        functions and types.

        Parameters
        ----------
        path : str or os.PathLike
        name : str, optional
            Prefix of the names of all functions, types and macros; the kernel's own name by
            default. Two kernels in one program need two names.
        prefix : str, optional
            Text before that name.
        as_object : bool, optional
            Write the images to an object file, ``scale_images.o`` beside ``scale.c``, and not into
            the source. Link it with your program; it compiles faster.
        machine : {"x86_64", "aarch64"}, optional
            The processor of the object file; this machine's by default.

        Returns
        -------
        list of pathlib.Path
            The source, the header, and the object file if there is one.

        Raises
        ------
        ValueError
            If C cannot express a part of the set. Examples are an argument with different types, or
            a heuristic or a grid that reads a value that C does not have. Also if `name` is not a
            valid C name, or `machine` is unknown or given without `as_object`.
        """
        # Not imported at the top, because a program that loads and launches does not need it.
        from culaunch._triton.c_output import write_c

        flag = checked_flag("as_object", as_object)
        if machine is not None:
            checked_text("machine", machine)
        return write_c(self._saved, path, name, prefix, as_object=flag, machine=machine)

    @property
    def computed(self) -> dict[str, str]:
        """The arguments that the set computes, as heuristics did, and their expressions as text."""
        return {one.name: str(one.value) for one in self._saved.computed}

    @property
    def table(self) -> TunedTable | None:
        """The tuned configurations by key, if there are any."""
        return self._saved.table

    @property
    def configs(self) -> list[dict[str, Any]]:
        """The configurations to tune by: the constants and options in which variants differ."""
        return configs_of(self._saved)

    def with_table(
        self,
        key: Sequence[str],
        choices: Sequence[tuple[Sequence[Any], dict[str, Any]]] | KeptConfigs,
    ) -> KernelSet:
        """Return the set with a table of configurations, which its calls look up natively.

        A call uses the measurements on a device with this device's name. If there are none, it uses
        those for the same architecture, or for the nearest one.

        Parameters
        ----------
        key : sequence of str
            The names of the parameters that the choice depends on.
        choices : sequence of (sequence, dict), or TunedConfigs
            Pairs of the arguments of a call on this device and the configuration for similar
            calls, one of :attr:`configs`. From the results of :func:`culaunch.tuning.tune`, all
            entries whose keys are as long as `key`.

        Returns
        -------
        KernelSet
            A new set. This one is unchanged.

        Raises
        ------
        ValueError
            If a key is not a parameter, the set does not have a configuration, or there is no
            choice.
        """
        saved = self._saved
        if isinstance(choices, KeptConfigs):
            table = table_of_kept(saved, key, choices)
        else:
            # Read the types of the arguments like a call, because they are compared with a call's.
            described = [
                (given, tensor_types(self._specialize(tuple(given), {})), config)
                for given, config in choices
            ]
            here = Device()
            table = table_of(saved, key, described, here.arch.rstrip("af"), here.name)
        return self._with(table if saved.table is None else table.merge(saved.table))

    def _with(self, table: TunedTable | None) -> KernelSet:
        """Return the set with another table, or without one, to tune it again."""
        return KernelSet(replace(self._saved, table=table))

    def read(self, member: str) -> bytes:
        """Return the image of a variant.

        Parameters
        ----------
        member : str
            The name of the image in the variant.

        Returns
        -------
        bytes
            The image.

        Raises
        ------
        ValueError, TypeError
            If no variant has that name for one.
        """
        checked_text("member", member)
        if not any(member in (one.image, one.ptx) for one in self.variants):
            raise ValueError(f"{self.name} has no image {member!r:.100}")
        return self._saved.read(member)

    @classmethod
    def load(cls, source: str | os.PathLike[str] | bytes, name: str | None = None) -> KernelSet:
        """Read a library. Neither Triton nor a compiler is needed, nor a GPU before a launch.

        Parameters
        ----------
        source : str, os.PathLike or bytes
            A ``.culib`` file, or its bytes.
        name : str, optional
            Which function, if the library has several.

        Returns
        -------
        KernelSet
            The set. Its images are loaded into the driver at the first launch.

        Raises
        ------
        ImageError
            If it is not a library, is damaged, or has a newer version.
        KernelNotFoundError
            If it does not have this function.
        """
        if name is not None:
            checked_text("name", name)
        library = LibraryFile(source)
        sets = [one for one in library.manifest["functions"] if one.get("kind") == KIND]
        found = [one for one in sets if name in (None, one["name"])]
        if len(found) != 1:
            have = ", ".join(one["name"] for one in sets) or "none"
            wanted = "one Triton kernel" if name is None else f"Triton kernel {name!r}"
            raise KernelNotFoundError(
                f"{library.source}: the library must have {wanted} (it has {have})"
            )
        return cls._from_manifest(found[0], library)

    def to_manifest(self) -> dict[str, Any]:
        """Return the kernel's entry in a library's manifest.

        Returns
        -------
        dict
            The entry, in a form that JSON can hold.
        """
        return write_entry(self._saved)

    @classmethod
    def _from_manifest(cls, entry: dict[str, Any], library: LibraryFile) -> KernelSet:
        made = read_entry(entry, library.manifest["members"], library.source)
        try:
            return cls(SavedSet(**made, read=library.members))
        except (TypeError, ValueError) as error:
            raise ImageError(
                f"the manifest's entry of {made['name']!r:.60} is invalid: {error}",
                source=library.source,
            ) from None

    # ---- combining sets

    def merge(self, *others: KernelSet) -> KernelSet:
        """Combine the variants of several sets of one kernel, in order.

        Their tuned tables become one. If two sets have an entry for the same key and architecture,
        the first set's entry counts.

        Parameters
        ----------
        *others : KernelSet
            Other sets of the same kernel.

        Returns
        -------
        KernelSet
            The set with all variants.

        Raises
        ------
        TypeError
            If one is not a set.
        ValueError
            If the sets differ in more than variants. They must have the same kernel, tuning key,
            heuristics and grid. They must set the same arguments to zero, and the blocks of the
            same descriptors, before a launch.
        """
        for other in others:
            if not isinstance(other, KernelSet):
                raise TypeError(f"merge() takes KernelSets (got {type(other).__qualname__})")
        return KernelSet(merge_sets([self._saved, *(one._saved for one in others)]))  # noqa: SLF001

    def __len__(self) -> int:
        return len(self.variants)

    def __repr__(self) -> str:
        return f"<culaunch.triton.KernelSet {self.name}, {counted(len(self), 'variant')}>"

    # ---- the set's own grid

    @property
    def grid(self) -> SavedGrid | None:
        """The grid that was saved, if there is one: a function of the arguments by name."""
        return self._grid

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Launch with the grid that was saved.

        Raises
        ------
        TypeError
            If the set has none.
        """
        if self._grid is None:
            raise TypeError(
                f"{self.name} has no grid of its own: call {self.name}[grid](...), or compile it "
                "with grid="
            )
        self[self._grid](*args, **kwargs)


in_regions(KernelSet, "break", "set of kernels")
