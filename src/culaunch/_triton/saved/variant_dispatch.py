"""``VariantDispatcher``: saved variants of a kernel, selected and launched natively."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.untraced import untraced
from culaunch._errors import KernelNotFoundError
from culaunch._launch.devices.driver import capability_of
from culaunch._triton.calls.dispatcher import Dispatcher
from culaunch._triton.calls.messages import raise_unknown
from culaunch._triton.saved.dispatch_parameters import dispatch_parameters
from culaunch._triton.saved.select import KNOWN_OPTIONS, arch_fits, select
from culaunch._triton.saved.variant import SavedVariant
from culaunch._triton.variants.load_variant import load_variant, resources_missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Self

    from culaunch._core import Kernel, TritonVariant
    from culaunch._triton.saved.set import SavedSet

_MOST_SHOWN = 40


class VariantDispatcher(Dispatcher):
    """The variants of a set: a call selects one by its arguments, and the first use loads it.

    Parameters
    ----------
    saved : SavedSet
    tuning_key : sequence of (int, int), optional
        As :class:`Dispatcher` takes it.
    """

    def __new__(cls, saved: SavedSet, tuning_key: Sequence[tuple[int, ...]] | None = None) -> Self:
        """Make one."""
        self = super().__new__(cls, saved.name, dispatch_parameters(saved), tuning_key)
        self._saved = saved
        self._options = sorted(
            {*KNOWN_OPTIONS, *(option for one in saved.variants for option in one.options)}
        )
        self._loaded = {}
        return self

    _saved: SavedSet
    _options: list[str]
    _loaded: dict[int, TritonVariant]

    @property
    def heuristics(self) -> tuple[str, ...]:
        """The constants that every call must pass."""
        return self._saved.heuristics

    # ---- called by the native half

    @untraced
    def _miss(
        self,
        values: dict[str, Any],
        options: dict[str, Any],
        description: list[tuple[Any, Any]],
        device: int,
    ) -> TritonVariant:
        saved = self._saved
        unknown = [name for name in options if name not in self._options]
        if unknown:
            raise_unknown(self, unknown, self._options)
        constants = {
            one.name: values[one.name]
            for one in saved.parameters
            if one.is_constexpr and one.name in values
        }
        # Constants are compared by name, run-time arguments by position.
        given = [
            pair
            for one, pair in zip(saved.parameters, description, strict=True)
            if not one.is_constexpr
        ]
        capability, only_ptx = self._target(device)
        index, reasons = select(
            saved.variants, given, constants, options, capability, only_ptx=only_ptx
        )
        if index is None:
            raise self._no_variant(given, {**constants, **options}, reasons)
        return self._variant(index, device)

    def load_all(self, device: int) -> Iterator[Kernel]:
        """Load the variants that a call on a device could select.

        Parameters
        ----------
        device : int
            The ordinal of the device.

        Returns
        -------
        iterator of Kernel
            Their kernels.
        """
        if self._driver is None:
            self._prepare()
        capability, only_ptx = self._target(device)
        nearest: dict[str, tuple[int, int]] = {}
        for index, one in enumerate(self._saved.variants):
            reason, nearness = arch_fits(one, capability, only_ptx=only_ptx)
            # A call determines everything about a variant except its architecture.
            words = str((one.types, one.keys, one.constants, one.options))
            # Of two images for the same call, the one nearer to the device is used.
            if not reason and nearest.get(words, (nearness - 1, 0))[0] < nearness:
                nearest[words] = (nearness, index)
        for _, index in nearest.values():
            yield self._variant(index, device).kernel

    # ---- helpers

    def _variant(self, index: int, device: int) -> TritonVariant:
        known = self._loaded.get(index)
        if known is None:
            known = self._loaded[index] = self._load(self._saved.variants[index], device)
        return known

    def _target(self, device: int) -> tuple[int, bool]:
        """Return a device's capability as 10 major + minor, and whether it accepts only PTX."""
        assert self._driver is not None
        major, minor = capability_of(self._driver, device)
        return 10 * major + minor, self._driver.name == "emulator"

    def _load(self, variant: SavedVariant, device: int) -> TritonVariant:
        assert self._driver is not None
        name = variant.image
        # Use PTX if there is no cubin: the driver compiles it on loading.
        if name is None or self._driver.name == "emulator":
            name = variant.ptx
        assert name is not None
        image = self._saved.image(name)
        constants = {
            name: value for name, value in variant.constants.items() if name not in variant.options
        }
        made = load_variant(self._driver, image, variant.facts, variant.types, constants, None)
        missing = resources_missing(self._driver, made, variant.facts, device)
        if missing is not None:
            needed, available, what = missing
            raise ValueError(
                f"{self.name} needs {needed} of {what}, and device {device} has {available}"
            )
        return made

    def _no_variant(
        self, given: list[tuple[Any, Any]], settings: dict[str, Any], reasons: list[str]
    ) -> KernelNotFoundError:
        variants = self._saved.variants
        shown = SavedVariant("", tuple(a for a, _ in given), tuple(b for _, b in given), settings,
                             {}, variants[0].facts)  # fmt: skip
        title = f"no variant of {self.name} fits the call{shown}; the variants are"
        lines = [
            f"  {variant}: {reason}" for variant, reason in zip(variants, reasons, strict=True)
        ]
        log = "\n".join([title, *lines])
        if len(lines) > _MOST_SHOWN:
            lines[_MOST_SHOWN:] = [f"  and {len(lines) - _MOST_SHOWN} more: error.log lists all"]
        return KernelNotFoundError("\n".join([title, *lines]), log=log)
