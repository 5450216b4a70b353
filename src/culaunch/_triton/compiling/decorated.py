"""A decorated kernel: the parts of ``autotune`` and ``heuristics`` that can be saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from culaunch._launch import Device
from culaunch._launch.devices.driver import capability_of, current_driver
from culaunch._triton.calls.choice import split_settings
from culaunch._triton.calls.object_kinds import type_name
from culaunch._triton.compiling.hooks import SavedHooks
from culaunch._triton.decorators.layers import triton_kinds
from culaunch._triton.native_kernel import NativeKernel
from culaunch._triton.saved.tuned_table import TunedEntry, TunedTable
from culaunch._triton.variants.checks import ELEMENTS
from culaunch._triton.variants.constants import normal_constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True)
class Heuristic:
    """One argument that ``@triton.heuristics`` computes."""

    name: str
    call: Any
    """Receives a dict of the arguments."""
    is_early: bool
    """Whether it is above the autotuner."""


@dataclass(frozen=True)
class Decorated:
    """The argument of :func:`culaunch.triton.compile`, taken apart."""

    function: Any
    """A ``triton.runtime.JITFunction``."""
    tuner: Any
    """A ``triton.runtime.Autotuner``, or None."""
    heuristics: tuple[Heuristic, ...]
    """The heuristics, in the order in which they are evaluated."""

    @classmethod
    def of(cls, kernel: Any) -> Decorated:
        """Take a kernel apart.

        Raises
        ------
        TypeError
            If it is not a Triton kernel.
        ValueError
            If hooks run before each launch of it, or two autotuners are above it.
        """
        known = triton_kinds()
        tuner = None
        heuristics: dict[str, Heuristic] = {}
        while not isinstance(kernel, known.function):
            if type(kernel).__name__ == "InterpretedFunction":
                raise TypeError("TRITON_INTERPRET is set: unset it to compile")
            # `native` was applied below a decorator, so continue in Triton's own object.
            if isinstance(kernel, NativeKernel):
                kernel = kernel._kernel  # noqa: SLF001 - other names are Triton's
                continue
            # Include subclasses of Triton's classes: fla has an autotuner of its own.
            found = kernel if isinstance(kernel, known.autotuner) else None
            if found is not None and tuner is not None:
                raise ValueError(
                    "compile() accepts one autotuner above a kernel: pass the inner one (.fn)"
                )
            tuner = tuner or found
            if isinstance(kernel, known.heuristics):
                for name, call in kernel.values.items():
                    heuristics.pop(name, None)  # the inner one takes precedence
                    heuristics[name] = Heuristic(name, call, is_early=tuner is None)
            elif found is None:
                kind = f"{type(kernel).__module__}.{type(kernel).__qualname__}"
                # Any other decorator runs unknown Python code.
                advice = ": compile the kernel below it (.fn)" if hasattr(kernel, "fn") else ""
                raise TypeError(
                    "kernel must be a @triton.jit kernel, optionally under @triton.autotune and "
                    f"@triton.heuristics (got {kind}){advice}"
                )
            kernel = kernel.fn
        if kernel.pre_run_hooks:
            raise ValueError(
                f"{kernel.__name__} has pre-run hooks, which are Python code and cannot be saved: "
                "compile it without them"
            )
        # Without an autotuner, "early" has no meaning.
        if tuner is None:
            heuristics = {name: replace(one, is_early=False) for name, one in heuristics.items()}
        return cls(kernel, tuner, tuple(heuristics.values()))

    def hooks(self, *, has_own_configs: bool) -> SavedHooks:
        """Return the effects of the configurations' hooks.

        Parameters
        ----------
        has_own_configs : bool
            Whether the caller names configurations. Then the hooks that they need are not known.
        """
        used: Sequence[Any] = ()
        if self.tuner is not None:
            used = self.tuner.configs if has_own_configs else self._used()
        return SavedHooks(self.function, used, has_own_configs=has_own_configs)

    def configs(self) -> tuple[Sequence[dict[str, Any]] | None, TunedTable | None]:
        """Return the configurations to compile, and the table of the chosen ones."""
        if self.tuner is None:
            return None, None
        settings: list[dict[str, Any]] = []
        for config in self._used():
            if (made := self._settings(config)) not in settings:
                settings.append(made)
        return settings, self._table()

    def _settings(self, config: Any) -> dict[str, Any]:
        """Return a configuration's settings that no heuristic below the autotuner replaces."""
        given = options_of(self.function, self.heuristics)
        return {name: one for name, one in config.all_kwargs().items() if name not in given}

    def _used(self) -> list[Any]:
        """Return the configurations chosen for any key; all of them if none was chosen yet."""
        if not self._is_tuned():
            return list(self.tuner.configs)
        return list(self._choices.values())

    def _is_tuned(self) -> bool:
        return bool(self._choices) and len(self.tuner.configs) > 1

    @property
    def _choices(self) -> Mapping[Any, Any]:
        """The autotuner's choices by key; empty if they cannot be listed."""
        # A subclass may store its choices in a database, with its own keys.
        cache = self.tuner.cache
        return cache if isinstance(cache, Mapping) else {}

    def _table(self) -> TunedTable | None:
        if not self._is_tuned():
            return None
        arch, device = _own_device()
        # The autotuner looks up a choice before its configurations and the heuristics below it set
        # values.
        unknown = {name for config in self.tuner.configs for name in config.kwargs}
        unknown.update(one.name for one in self.heuristics if not one.is_early)
        names = tuple(
            name for name in self.tuner.keys if name in self.tuner.arg_names and name not in unknown
        )
        entries = []
        for key, config in self._choices.items():
            constants, options = split_settings(self._settings(config), self.tuner.arg_names)
            given, dtypes = self._take_apart(key, names)
            try:
                values = tuple(normal_constant(value) for value in given)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"{self.function.__name__} was tuned by ({', '.join(names)}), and a value "
                    f"among {given!r:.100} cannot be saved: {error}"
                ) from error
            entries.append(
                TunedEntry(
                    values,
                    tuple(type_name(dtype) for dtype in dtypes),
                    {name: normal_constant(value) for name, value in constants.items()},
                    {name: value for name, value in options.items() if value is not None},
                    arch,
                    device,
                )
            )
        return TunedTable(names, tuple(entries))

    def _take_apart(
        self, key: tuple[Any, ...], names: tuple[str, ...]
    ) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """Return the values of an autotuner's key, and the element types of the call's tensors.

        Triton's key has the values of the given arguments, in order. The element types of all
        tensors follow as texts.
        """
        count = len(key)
        while count and _is_element_type(key[count - 1]):
            count -= 1
        values, dtypes = key[:count], key[count:]
        if len(values) >= len(names):  # a text among the values may look like an element type
            return key[: len(names)], key[len(names) :]
        defaults = {one.name: one.default for one in self.function.params if one.has_default}
        left_out = [name for name in names if name in defaults]
        if len(values) + len(left_out) != len(names):
            raise ValueError(
                f"{self.function.__name__} was tuned by ({', '.join(names)}) in a call that passed "
                f"only some of these, and Triton's key {key!r:.100} does not show which: pass all "
                "of "
                "them when you tune"
            )
        rest = iter(values)
        return tuple(defaults[n] if n in defaults else next(rest) for n in names), dtypes


def options_of(function: Any, heuristics: Iterable[Heuristic]) -> frozenset[str]:
    """Return the compiler options among the results of heuristics."""
    return frozenset(one.name for one in heuristics) - frozenset(function.arg_names)


def _is_element_type(value: object) -> bool:
    return type(value) is str and type_name(value) in ELEMENTS


def _own_device() -> tuple[str, str]:
    """Return the architecture and the name of the current device, on which the kernel was tuned.

    Both are "" without a device; the tuning then came from a file, or was set by hand.
    """
    try:
        driver = current_driver()
        device = driver.current_device()
        major, minor = capability_of(driver, device)
        name = Device(device).name
    except (RuntimeError, ValueError, ImportError):
        return "", ""
    return f"sm_{major}{minor}", name
