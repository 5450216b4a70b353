"""Two worlds of one source: in one Triton's own decorators decide, in the other culaunch's.

Nothing is compiled. Triton's compiler is replaced, in both, by one that notes what it would compile
for. One world's launches go to Triton's own launcher, which is replaced, too, and the other's to
the recording driver. The test compares what reaches the kernel: constants with their types,
options, element types, values, the grid, and how often.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import itertools
import math
import operator
import os
import re
import types

import bare_kernels
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from recording import layout_of
from triton.runtime import jit
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction

import culaunch as cl
from culaunch._triton import native_kernel
from culaunch._triton.upstream.target import StandIn
from culaunch._triton.variants import launch_facts, load_variant, parameter_sources
from culaunch.triton import install, native

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "debug")
NAMES = {
    "torch": torch, "triton": triton, "tl": tl, "np": np, "math": math, "os": os,
    "functools": functools, "types": types, "Heuristics": Heuristics, "Autotuner": Autotuner,
    "Config": triton.Config, "heuristics": triton.heuristics, "autotune": triton.autotune,
}  # fmt: skip


class TwoWorlds:
    """Both worlds; `recorder` is the driver of culaunch's."""

    def __init__(self, recorder, monkeypatch):
        for holder, name in ((JITFunction, "_do_compile"), (jit, "compute_cache_key")):
            if not hasattr(holder, name):
                pytest.skip(f"needs triton.{holder.__name__}.{name}")
        self.compiled = {}  # by the name of the kernel
        self.launched = []  # by Triton
        self.recorder = recorder
        self._shared = {}  # tensors by name
        self._own = ({}, {})  # address -> which one it is, in each world
        monkeypatch.setattr(JITFunction, "_do_compile", self._replacement())
        monkeypatch.setattr(native_kernel, "load_compiled", self._load)
        # Triton keeps its keys by arguments that are equal, though True, 1 and 1.0 are.
        work_out = jit.compute_cache_key
        monkeypatch.setattr(jit, "compute_cache_key", lambda _, *rest: work_out({}, *rest))
        active = triton.runtime.driver
        monkeypatch.setattr(active, "_active", getattr(active, "_active", None), raising=False)
        active.set_active(StandIn.of_device(recorder.core, 0))

    def compare(self, source, steps, tensors, *, installed=False):
        """Run the steps in both worlds, whose source makes ``K``: say where they differ first.

        Where kernels are installed, a call that fails does so as in Triton, to the last word.
        """
        self._shared = tensors
        self._own = ({}, {})
        worlds = [
            World(self, which, source, dict(tensors), is_native=which == 1 and not installed)
            for which in range(2)
        ]
        with install(include="world1.*") if installed else contextlib.nullcontext():
            for i, step in enumerate(steps):
                expected, found = (world.step(step) for world in worlds)
                # A grid is asked before it is known that an argument is missing.
                exactly = installed and not ("lambda" in step or "partial" in step)
                what = expected.differs_in(found, exactly=exactly)
                if what:
                    return (
                        f"step {i}, {step}: {what}\n"
                        f"  Triton   {getattr(expected, what)} {expected.error!r}\n"
                        f"  culaunch {getattr(found, what)} {found.error!r}"
                    )
        return None

    def take(self, which):
        """Give what a world has launched since."""
        if which == 0:
            found, self.launched = self.launched, []
            return found
        found = []
        for one in self.recorder.launches:
            kernel = self.compiled[one.kernel.name]
            leaves = zip(kernel.passed, one.arguments, strict=False)
            values = [self._value(1, kind, data) for kind, data in leaves]
            found.append(kernel.launch(one.grid, values))
        self.recorder.launches.clear()
        self.recorder.calls.clear()
        return found

    def ran(self, kernel, grid, arguments):
        """Note a launch by Triton."""
        leaves = [
            (kind, one)
            for named, argument in zip(kernel.signature.values(), arguments, strict=True)
            for kind, one in _leaves(named, argument)
        ]
        values = [self._value(0, kind, _data(kind, one)) for kind, one in leaves]
        self.launched.append(kernel.launch(grid, values))

    def _value(self, which, kind, data):
        number = int.from_bytes(data, "little")
        if not kind.startswith("*"):
            return number
        for name, one in self._shared.items():
            offset = number - one.data_ptr()
            if 0 <= offset <= one.untyped_storage().nbytes():
                return f"{name} + {offset}"
        own = self._own[which]
        return own.setdefault(number, len(own))

    # ---- replacements of Triton's compiler and loader

    def _replacement(self):
        def compile_nothing(function, key, signature, device, constants, options, *_):
            made = BareKernel(self, function, signature, constants, options)
            function.device_caches[device][0][key] = made
            return made

        return compile_nothing

    def _load(self, driver, function, kernel, description, device):
        kinds = [
            kind
            for parameter, (kind, _) in zip(function.params, description, strict=True)
            if not parameter.is_constexpr
        ]
        sizes = [
            parameter_sources.size_of(kind)
            for kind in parameter_sources.leaves_of(kinds)
            if kind != "constexpr"
        ]
        image = self.recorder.image({kernel.name: layout_of([*sizes, 8, 8])})
        facts = launch_facts.LaunchFacts(name=kernel.name, triton_version="3.6.0")
        return load_variant.load_variant(driver, cl.Image(image), facts, kinds, {}, kernel)


class BareKernel:
    """An object that Triton accepts as a compiled kernel."""

    numbers = itertools.count()
    function = 1
    packed_metadata = ()
    asm = types.MappingProxyType({})

    def __init__(self, worlds, function, signature, constants, options):
        self._worlds = worlds
        self.signature = signature
        self.passed = [
            kind for kind in parameter_sources.leaves_of(signature.values()) if kind != "constexpr"
        ]
        self._constants = {
            function.arg_names[path[0]]: spell(one) for path, one in constants.items()
        }
        self._options = {name: spell(getattr(options, name)) for name in OPTIONS}
        self.name = self.hash = f"bare{next(self.numbers)}"
        self.metadata = types.SimpleNamespace(name=self.name)
        worlds.compiled[self.name] = self

    def launch_metadata(self, grid, stream, *arguments):
        pass

    def run(self, x, y, z, stream, function, packed, metadata, enter, leave, *arguments):
        """Launch, in Triton's world."""
        self._worlds.ran(self, (int(x), int(y), int(z)), arguments)

    def launch(self, grid, values):
        """Describe a launch."""
        return {
            **{name: self._constants[name] for name in sorted(self._constants)},
            **self._options, "values": values, "grid": tuple(grid), "types": self.signature,
        }  # fmt: skip


class Step:
    """The results of one step."""

    def __init__(self, error, launches, log, printed):
        self.error, self.launches, self.log, self.printed = error, launches, log, printed
        self.failed = error is not None
        self.message = (type(error).__name__, str(error))

    def differs_in(self, other, *, exactly):
        """Tell what another world did that this one did not."""
        every = ("failed", "launches", "log", "printed", "message")
        # A call that cannot be launched is refused before any decorator runs.
        compared = every if exactly else every[:1] if self.failed else every[:4]
        if isinstance(other.error, SystemError):
            return "error"
        return next((one for one in compared if getattr(self, one) != getattr(other, one)), None)


class World:
    """One of the two; the first is Triton's."""

    def __init__(self, worlds, which, source, tensors, *, is_native):
        self._worlds, self._which = worlds, which
        self._measured = []
        self.names = {
            **NAMES, "__name__": "world", "T": tensors, "LOG": [], "jit": self.jit,
            "measure": self.measure, "native": native if is_native else lambda kernel: kernel,
        }  # fmt: skip
        exec(compile(source, "<world>", "exec"), self.names)
        self.names["TRITONS"] = self.names["K"]
        self.names["K"] = self.names["native"](self.names["K"])

    def jit(self, name="defaults"):
        """Make a kernel, whose module says in which world it is."""
        function = getattr(bare_kernels, name)
        own = types.FunctionType(
            function.__code__, function.__globals__, name, function.__defaults__
        )
        own.__annotations__ = function.__annotations__
        own.__module__ = f"world{self._which}"
        return JITFunction(own)

    def measure(self, call, quantiles=None):
        """Find configurations better or worse by what they launch, and never by a clock."""
        call()
        found = self._worlds.take(self._which)
        self._measured += found
        choosing = [{**launch, "grid": None} for launch in found]
        digest = hashlib.sha256(repr(choosing).encode()).digest()
        return [float(digest[0])] * 3

    def step(self, text):
        """Run one step of the program."""
        error, printed = None, io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(text, "<step>", "exec"), self.names)
        except Exception as raised:  # noqa: BLE001
            error = raised
        launches = self._measured + self._worlds.take(self._which)
        self._measured = []
        log = [repr(one) for one in self.names["LOG"]]
        self.names["LOG"].clear()
        return Step(error, launches, log, re.sub(r"after [\d.]+s", "after", printed.getvalue()))


def spell(value):
    """Tell a constant's type and value."""
    if isinstance(value, tuple):
        return (type(value).__name__, *map(spell, value))
    return f"{type(value).__name__} {value!r}"


def _leaves(kind, value):
    """Take tuples apart; what is a constant is left out."""
    if isinstance(kind, tuple):
        for one in zip(kind, value, strict=True):
            yield from _leaves(*one)
    elif kind != "constexpr":
        yield kind, value


def _data(kind, value):
    """Give the bytes that Triton's launcher would pass."""
    if kind.startswith("*"):
        return int(value.data_ptr() if hasattr(value, "data_ptr") else value).to_bytes(8, "little")
    if kind == "fp32":
        return np.float32(value).tobytes()
    # A float is not an int, and a value that does not fit is refused.
    return int(operator.index(value)).to_bytes(
        parameter_sources.size_of(kind), "little", signed=kind[0] == "i"
    )
