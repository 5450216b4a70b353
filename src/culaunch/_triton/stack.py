"""A kernel with its decorators: what they choose, and what that depends on."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from culaunch._triton.autotuner import ATTRIBUTE, OwnWay, set_benchmark
from culaunch._triton.decision import Decision, Recorder, give_back, refuse_to_measure
from culaunch._triton.guards import Guards
from culaunch._triton.purity import Unknown
from culaunch._triton.reads import Reads
from culaunch._triton.shape_reads import has_plain_shape
from culaunch._triton.target import triton_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from culaunch._triton.reads import Guard

# csrc/triton/tuning.h, KeyKind.
VALUE, NUMBER, NONE, TYPE = range(4)


class Stack:
    """A kernel of Triton taken apart.

    Parameters
    ----------
    kernel : JITFunction, Autotuner or Heuristics

    Raises
    ------
    Unknown
        If what a decorator chooses has to be asked of it at every call.
    TypeError
        If it is no kernel.

    Attributes
    ----------
    kernel : object
    function : JITFunction
    chosen : frozenset of str
        Everything that a decorator sets.
    key : tuple of (int, int, int) or None
        The parameters that the choice depends on, how, and which dimension of a shape; None where
        there is no decorator.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self._layers, self.function = _take_apart(kernel)
        self._autotuner = triton_module("runtime.autotuner").Autotuner
        self._reads: list[Reads] = []
        self._set: set[str] = set()
        self._replaced: set[str] = set()
        kinds: dict[str, set[tuple[int, int]]] = {}
        # Outermost first, which is the order in which they run: what one sets is known when the
        # next is looked at.
        for layer in self._layers:
            reads = (
                self._of_autotuner(layer) if self._is_tuner(layer) else self._of_heuristics(layer)
            )
            for name, *how in reads:
                kinds.setdefault(name, set()).add((how[0], how[1]))
        numbers = {name: i for i, name in enumerate(self.function.arg_names)}
        self.chosen = frozenset(self._set)
        self.key: tuple[tuple[int, int, int], ...] | None = None
        if self._layers:
            self.key = tuple(
                (numbers[name], *how) for name in sorted(kinds) for how in sorted(kinds[name])
            )

    @property
    def is_decorated(self) -> bool:
        """Whether there is a decorator."""
        return bool(self._layers)

    @property
    def shaped(self) -> set[str]:
        """The arguments of whose shapes a heuristic reads a part."""
        return {name for reads in self._reads for name, _ in reads.shapes}

    @property
    def tuners(self) -> list[Any]:
        """The autotuners, outermost first."""
        return [layer for layer in self._layers if self._is_tuner(layer)]

    @property
    def fingerprint(self) -> object:
        """What native code was made from: equal where it need not be made again."""
        layers = [
            (id(layer), tuple((name, id(call)) for name, call in layer.values.items()))
            if not self._is_tuner(layer)
            else (id(layer), id(_own_run(layer, self._autotuner)))
            for layer in self._layers
        ]
        return id(self.function), layers, self.chosen, self.key

    def decide(
        self,
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        launch: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any],
        *,
        may_measure: bool = True,
    ) -> Decision:
        """Let the decorators choose, in Python, and launch what they chose.

        Copies of them run, which launch natively; what they note goes to Triton's own objects.

        Raises
        ------
        NotMeasured
            If an autotuner has to measure its configurations first, and must not.
        """
        recorder = Recorder(self.function, launch)
        inner: Any = recorder
        tuners = []
        # From the inside out: each copy calls the one made before it, and the innermost the
        # recorder.
        for layer in reversed(self._layers):
            made = copy.copy(layer)
            made.fn = inner
            vars(made)[ATTRIBUTE] = OwnWay()
            if self._is_tuner(layer):
                set_benchmark(made)
                if not may_measure:
                    made._bench = refuse_to_measure  # noqa: SLF001 - Triton's own place for it
                tuners.append((layer, made))
            inner = made
        # An autotuner of a class of its own that left its cache as it was has decided by something
        # that is not known here: such a decision is not kept.
        caches = [(layer.cache, dict(layer.cache)) for layer, _ in tuners if self._decides(layer)]
        result = inner.run(*args, grid=grid, warmup=False, **kwargs)
        for layer, made in tuners:
            give_back(made, layer)
        final = recorder.final
        # What reached the kernel and was not in the call was set by a decorator.
        names = self._replaced | (final.keys() - kwargs.keys())
        return Decision(
            {name: final[name] for name in names if name in final},
            frozenset(self._replaced),
            tuple((layer, made.best_config) for layer, made in reversed(tuners)),
            all(before == cache for cache, before in caches)
            and self._shapes_are_plain(args, kwargs),
            result,
        )

    def heuristics_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """Return what the heuristics say; None where an autotuner is above any of them."""
        found = dict(kwargs)
        made: dict[str, Any] = {}
        for layer in self._layers:
            if self._is_tuner(layer):
                return made
            for name, call in layer.values.items():
                found[name] = made[name] = call(
                    {**dict(zip(layer.arg_names, args, strict=False)), **found}
                )
        return made

    def guards(self) -> Guards:
        """Return what must be as it is for the decorators to choose as before."""
        guards = Guards()
        for layer in self._layers:
            guards.attribute(layer, "fn")
            guards.attribute(layer, "run")
            if not self._is_tuner(layer):
                guards.attribute(layer, "values")
                guards.contents(layer.values)
                continue
            for name in ("configs", "cache", "keys"):
                guards.attribute(layer, name)
            configs = layer.configs
            # A list is guarded by its length; of a single configuration, which is used without a
            # key, by its identity as well.
            guards.lists.append((configs, len(configs), configs[0] if len(configs) == 1 else None))
            guards.contents(layer.cache, all_of_it=False)
            # Configurations are objects that somebody may change after they were chosen.
            used = layer.cache.values() if len(configs) > 1 else configs
            for config in {id(one): one for one in used}.values():
                guards.contents(vars(config))
                guards.contents(config.kwargs)
            guards.entries += _globals_of(layer, self._autotuner)
        for reads in self._reads:
            guards.entries += reads.guards
            guards.cells += reads.cells
        return guards

    def _shapes_are_plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether native code reads what was read of shapes as Python does."""
        given = {**dict(zip(self.function.arg_names, args, strict=False)), **kwargs}
        return all(
            has_plain_shape(given[name]) for name in self.shaped if given.get(name) is not None
        )

    # ---- one decorator

    def _is_tuner(self, layer: Any) -> bool:
        return isinstance(layer, self._autotuner)

    def _decides(self, tuner: Any) -> bool:
        """Whether a subclass of Triton's autotuner decides."""
        return _own_run(tuner, self._autotuner) is not None

    def _of_heuristics(self, layer: Any) -> Iterator[tuple[str, int, int]]:
        constants = {one.name for one in self.function.params if one.is_constexpr}
        for name, call in layer.values.items():
            try:
                reads = Reads.of(call)
                self._check_names(reads, constants)
            except Unknown as unknown:
                raise Unknown(f"the heuristic {name} is called: {unknown}") from None
            self._reads.append(reads)
            for names, kind in (
                (reads.values, NUMBER),
                (reads.nones, NONE),
                (reads.types, TYPE),
                (reads.dtypes, TYPE),
            ):
                # What a decorator has set before depends on what that one read.
                yield from ((one, kind, 0) for one in names - self._set)
            for one, part in reads.shapes:
                yield one, part.kind, part.dimension
                yield one, TYPE, 0
            self._set.add(name)
            self._replaced.add(name)

    def _check_names(self, reads: Reads, constants: set[str]) -> None:
        for name in sorted(reads.names - self._set):
            if name not in self.function.arg_names:
                raise Unknown(f"it reads {name}, which is no parameter")
        for read, what in (
            (reads.dtypes | reads.types, "type"),
            ({name for name, _ in reads.shapes}, "shape"),
        ):
            for name in sorted(read & constants):
                raise Unknown(f"it reads the {what} of {name}, which is a constant")
            for name in sorted(read & self._set):
                raise Unknown(f"it reads the {what} of {name}, which a decorator sets")

    def _of_autotuner(self, layer: Any) -> Iterator[tuple[str, int, int]]:
        # More would be right too, and are not seen in practice: what is not tested is not promised.
        if len(self.tuners) > 2:
            raise Unknown("more than two autotuners are above it")
        if type(layer.cache) is not dict or type(layer.configs) is not list:
            raise Unknown("its autotuner keeps its choices, or configurations, in an own way")
        # With one configuration there is nothing to choose by.
        if len(layer.configs) > 1 or self._decides(layer):
            names = set(layer.keys) & set(self.function.arg_names)
            yield from ((one, VALUE, 0) for one in names - self._set)
        for config in layer.configs:
            self._set.update(config.kwargs)


def _take_apart(kernel: Any) -> tuple[list[Any], Any]:
    """Return the decorators of a kernel, outermost first, and its JIT function."""
    function_type = triton_module("runtime.jit").JITFunction
    autotuner = triton_module("runtime.autotuner")
    layers = []
    while not isinstance(kernel, function_type):
        if isinstance(kernel, autotuner.Heuristics):
            if _own_run(kernel, autotuner.Heuristics) is not None:
                raise Unknown(f"{type(kernel).__qualname__} has a run() of its own")
        elif not isinstance(kernel, autotuner.Autotuner):
            raise TypeError(f"no kernel of Triton: {type(kernel).__qualname__}")
        if "run" in vars(kernel):
            raise Unknown(f"somebody set run of its {type(kernel).__qualname__}")
        layers.append(kernel)
        inner = kernel.fn
        # native() may have been put below a decorator.
        kernel = getattr(inner, "_kernel", inner) if not isinstance(inner, function_type) else inner
    if _own_run(kernel, function_type) is not None or "run" in vars(kernel):
        raise Unknown("it has a run() of its own")
    return layers, kernel


def _own_run(layer: Any, base: type) -> Any:
    """Return the ``run`` that a subclass of Triton's class defines; None where it defines none."""
    for kind in type(layer).__mro__:
        if kind is base:
            return None
        if "run" in vars(kind):
            return vars(kind)["run"]
    return None


def _globals_of(tuner: Any, base: type) -> Iterator[Guard]:
    """Give the settings that a subclass of Triton's autotuner reads from its module."""
    for kind in type(tuner).__mro__:
        if kind is base:
            return
        for method in vars(kind).values():
            code, namespace = getattr(method, "__code__", None), getattr(method, "__globals__", {})
            for name in code.co_names if code is not None else ():
                found = namespace.get(name)
                if name in namespace and not callable(found) and not hasattr(found, "__path__"):
                    yield namespace, name, True, found
