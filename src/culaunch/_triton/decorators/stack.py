"""A decorated kernel: the choices of its decorators, and the values that they depend on."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from culaunch._triton.decorators.copied_layers import CopiedLayers
from culaunch._triton.decorators.decision import Decision
from culaunch._triton.decorators.layers import own_run, take_apart, triton_kinds
from culaunch._triton.reads.guards import Guards
from culaunch._triton.reads.key_kinds import KeyKind
from culaunch._triton.reads.of_code import reads_of
from culaunch._triton.reads.own_autotuners import attributes_of, globals_of
from culaunch._triton.reads.plain_objects import has_plain_class, has_plain_dtype, has_plain_shape
from culaunch._triton.reads.purity import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from culaunch._triton.reads.reads import Reads


class Stack:
    """A kernel of Triton taken apart.

    Parameters
    ----------
    kernel : JITFunction, Autotuner or Heuristics

    Raises
    ------
    Unknown
        If a decorator must be asked for its choice at every call.
    TypeError
        If it is not a kernel.

    Attributes
    ----------
    kernel : object
    function : JITFunction
    chosen : frozenset of str
        Everything that a decorator sets.
    key : tuple of (int, KeyKind, int) or None
        The parameters that the choice depends on, how, and which dimension of a shape; None if
        there is no decorator.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self._layers, self.function = take_apart(kernel)
        self._autotuner = triton_kinds().autotuner
        self._reads: list[Reads] = []
        self._set: set[str] = set()
        # The values that are set regardless of the autotuner's choice.
        self._certain: set[str] = set()
        self._replaced: set[str] = set()
        kinds: dict[str, set[tuple[KeyKind, int]]] = {}
        # Outermost first, the order in which they run: one decorator's settings are known when the
        # next is analyzed.
        for layer in self._layers:
            reads = (
                self._of_autotuner(layer) if self._is_tuner(layer) else self._of_heuristics(layer)
            )
            for name, kind, dimension in reads:
                kinds.setdefault(name, set()).add((kind, dimension))
        numbers = {name: i for i, name in enumerate(self.function.arg_names)}
        self.chosen = frozenset(self._set)
        self.key: tuple[tuple[int, KeyKind, int], ...] | None = None
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
        """The arguments that have a part of their shape read by a heuristic."""
        return {name for reads in self._reads for name, _ in reads.shapes}

    @property
    def tuners(self) -> list[Any]:
        """The autotuners, outermost first."""
        return [layer for layer in self._layers if self._is_tuner(layer)]

    @property
    def fingerprint(self) -> object:
        """The inputs of the native code. If they are equal, it need not be rebuilt."""
        layers = [
            (id(layer), tuple((name, id(call)) for name, call in layer.values.items()))
            if not self._is_tuner(layer)
            else (id(layer), id(own_run(layer, self._autotuner)))
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
        """Let the decorators choose, in Python, and launch their choice.

        Raise NotMeasured if an autotuner has to measure its configurations first, and must not.
        """
        # An autotuner class that left its cache unchanged has decided by something unknown, so its
        # decision is not cached.
        deciding = [tuner for tuner in self.tuners if self._decides(tuner)]
        caches = [(layer.cache, dict(layer.cache)) for layer in deciding]
        copies = CopiedLayers(
            self._layers, self._autotuner, self.function, launch, may_measure=may_measure
        )
        result = copies.run(grid, args, kwargs)
        recorder = copies.recorder
        final = recorder.final
        # A decorator has set an argument that reached the kernel but was not in the call.
        names = self._replaced | (final.keys() - kwargs.keys())
        given = {name: value for name, value in kwargs.items() if name not in self._replaced}
        is_kept = (
            all(before == cache for cache, before in caches)
            # A user's class may pass other arguments on, pass them several times, or return
            # anything. It is unknown which arguments it shows to a hook.
            and recorder.has(grid, args, given)
            and (not deciding or (recorder.count == 1 and recorder.result is result))
            and not (deciding and any(one.pre_hook is not None for _, one in copies.configs))
            # A configuration from elsewhere may set unknown arguments.
            and self._certain <= names
            and self._are_plain(args, kwargs)
        )
        settings = {name: final[name] for name in names if name in final}
        return Decision(settings, frozenset(self._replaced), copies.configs, is_kept, result)

    def heuristics_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the heuristics' settings above all autotuners that no lower decorator replaces."""
        found = dict(kwargs)
        made: dict[str, Any] = {}
        for i, layer in enumerate(self._layers):
            if self._is_tuner(layer):
                if any(map(self._decides, self.tuners)):
                    return {}  # it may have been replaced
                below = [one.values for one in self._layers[i:] if not self._is_tuner(one)]
                return {
                    name: one for name, one in made.items() if not any(name in b for b in below)
                }
            for name, call in layer.values.items():
                found[name] = made[name] = call(
                    {**dict(zip(layer.arg_names, args, strict=False)), **found}
                )
        return made

    def run_hooks(
        self,
        configs: dict[Any, Any],
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        settings: dict[str, Any],
    ) -> None:
        """Call the hooks of chosen configurations, as their autotuners do before a launch.

        Parameters
        ----------
        configs : dict
            An autotuner -> its choice. settings : dict
            What the decorators set.
        """
        found = {"grid": grid, "warmup": False, **kwargs}
        for layer in self._layers:
            if not self._is_tuner(layer):
                found.update((name, settings[name]) for name in layer.values)
                continue
            config = configs[layer]
            if config.pre_hook is not None:
                layer.nargs = dict(zip(layer.arg_names, args, strict=False))
                config.pre_hook({**layer.nargs, **found, **config.all_kwargs()})
                layer.nargs = None
            found.update(config.all_kwargs())

    def guards(self) -> Guards:
        """Return the guards under which the decorators choose as before."""
        guards = Guards()
        for layer in self._layers:
            for name in ("fn", "run", "arg_names"):
                guards.attribute(layer, name)
            if not self._is_tuner(layer):
                guards.attribute(layer, "values")
                guards.contents(layer.values)
                continue
            for name in ("configs", "cache", "keys"):
                guards.attribute(layer, name)
            if type(layer.keys) is list:
                guards.lists.append((layer.keys, len(layer.keys), None))
            configs = layer.configs
            # A list is guarded by its length. A single configuration, which is used without a key,
            # is also guarded by identity.
            guards.lists.append((configs, len(configs), configs[0] if len(configs) == 1 else None))
            guards.contents(layer.cache, all_of_it=False)
            # Configurations are mutable objects, and may change after they were chosen.
            used = layer.cache.values() if len(configs) > 1 else configs
            for config in {id(one): one for one in used}.values():
                guards.contents(vars(config))
                guards.contents(config.kwargs)
            guards.entries += globals_of(layer, self._autotuner)
            for name in attributes_of(layer, self._autotuner):
                guards.attribute(layer, name)
        for reads in self._reads:
            guards.entries += reads.guards
            guards.cells += reads.cells
        return guards

    def _are_plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether native code reads the same values of the arguments as Python."""
        given = {**dict(zip(self.function.arg_names, args, strict=False)), **kwargs}
        return all(
            is_plain(given[name])
            for reads in self._reads
            for names, is_plain in (
                ({name for name, _ in reads.shapes}, has_plain_shape),
                (reads.dtypes, has_plain_dtype),
                (reads.types, has_plain_class),
            )
            for name in names
            if given.get(name) is not None
        )

    # ---- one decorator

    def _is_tuner(self, layer: Any) -> bool:
        return isinstance(layer, self._autotuner)

    def _decides(self, tuner: Any) -> bool:
        """Whether a subclass of Triton's autotuner decides."""
        return own_run(tuner, self._autotuner) is not None

    def _of_heuristics(self, layer: Any) -> Iterator[tuple[str, KeyKind, int]]:
        constants = {one.name for one in self.function.params if one.is_constexpr}
        for name, call in layer.values.items():
            try:
                reads = reads_of(call, stays=True)
                self._check_names(reads, constants)
            except Unknown as unknown:
                raise Unknown(f"the heuristic {name} is called: {unknown}") from None
            self._reads.append(reads)
            for names, kind in (
                (reads.values, KeyKind.NUMBER),
                (reads.nones, KeyKind.NONE),
                (reads.types, KeyKind.TYPE),
                (reads.dtypes, KeyKind.TYPE),
            ):
                # A value that an earlier decorator has set depends on what that decorator read.
                yield from ((one, kind, 0) for one in names - self._certain)
            for one, part in reads.shapes:
                yield one, part.kind, part.dimension
                yield one, KeyKind.TYPE, 0
            self._set.add(name)
            self._certain.add(name)
            self._replaced.add(name)

    def _check_names(self, reads: Reads, constants: set[str]) -> None:
        for name in sorted(reads.names - self._certain):
            if name not in self.function.arg_names:
                raise Unknown(f"it reads {name}, which is not a parameter")
        for read, what in (
            (reads.dtypes | reads.types, "type"),
            ({name for name, _ in reads.shapes}, "shape"),
        ):
            for name in sorted(read & constants):
                raise Unknown(f"it reads the {what} of {name}, which is a constant")
            for name in sorted(read & self._set):
                raise Unknown(f"it reads the {what} of {name}, which a decorator sets")

    def _of_autotuner(self, layer: Any) -> Iterator[tuple[str, KeyKind, int]]:
        # More autotuners would also be correct, but do not occur in practice. Only two are tested.
        if len(self.tuners) > 2:
            raise Unknown("more than two autotuners are above it")
        if type(layer.cache) is not dict or type(layer.configs) is not list:
            raise Unknown("its autotuner stores its choices or configurations in its own way")
        # A single configuration leaves nothing to choose.
        if len(layer.configs) > 1 or self._decides(layer):
            names = set(layer.keys) & set(self.function.arg_names)
            yield from ((one, KeyKind.VALUE, 0) for one in names - self._certain)
        # The chosen configuration may be missing in the list, for instance if it comes from a file.
        settings = [set(one.all_kwargs()) for one in chain(layer.configs, layer.cache.values())]
        self._set.update(*settings)
        self._certain.update(set.intersection(*settings))
