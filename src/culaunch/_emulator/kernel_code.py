"""A kernel and the functions it calls, decoded as they are first needed."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Protocol

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.flow import build_code
from culaunch._emulator.decode.idle_loads import only_feeds_guarded_stores
from culaunch._emulator.kernel_variables import KernelVariables
from culaunch._emulator.ops import (  # noqa: F401  (each registers its instructions)
    asynchronous,
    atomics,
    barrier,
    bit_counts,
    bits,
    builtins,
    carries,
    cluster_launch_control,
    compare,
    control_flow,
    convert,
    floating,
    integer,
    logic,
    matrix,
    mbarrier,
    memory,
    permute,
    stores,
    surfaces,
    tcgen05,
    tensor_map_edits,
    textures,
    video,
    warp,
    wgmma,
    wmma,
)
from culaunch._emulator.types import is_type, size_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.machine.state import Code
    from culaunch._emulator.options import CodeChecks
    from culaunch._emulator.ptx.syntax import Function, Instruction
    from culaunch._emulator.ptx_image import PtxImage
    from culaunch._emulator.undefined.plan import Plan

_ACCESSES = frozenset(("ld", "ldu", "st", "atom", "red", "wmma"))
_NOT_GLOBAL = frozenset(("shared", "shared::cta", "shared::cluster", "local", "param", "const"))


class KernelCode:
    """The code that one kernel can run.

    Shared variables have addresses per kernel, so functions that several kernels call are
    decoded for each of them.
    """

    def __init__(self, module: Addresses, kernel: str, checks: CodeChecks) -> None:
        self.module = module
        self.checks: CodeChecks = checks
        self.syntax = module.image.syntax
        self.entry = self.syntax.functions[kernel]
        self.variables = KernelVariables(self.syntax, self.entry, gaps=checks.variables)
        self._codes: dict[str, Code] = {}
        # Program counters are unique among the functions of a kernel, in the order in which they
        # are first called: so groups in different functions can be distinguished and ordered.
        self._next_base = 0
        # How undefined bits go through its instructions, by their identity.
        self.plans: dict[int, Plan] = {}
        # By the identity of loads.
        self._idle: dict[int, bool] = {}
        # How long the NumPy engine has run it.
        self.seconds = 0.0
        # Whether the cache had the compiled engine's library of it; None before the first launch.
        self.is_built: bool | None = None

    def code(self, name: str) -> Code:
        """Return the decoded function called `name`."""
        name = self.syntax.aliases.get(name, name)
        found = self._codes.get(name)
        if found is None:
            function = self.syntax.functions[name]
            # A function is decoded when a call first reaches it. Kernels link many functions that
            # they never call, and unsupported instructions there are harmless.
            found = self._codes[name] = build_code(self, function, self._next_base)
            # One more than the number of blocks, because a frame may return to the place after the
            # last block.
            self._next_base += len(found.blocks) + 1
        return found

    @functools.cached_property
    def smallest_access(self) -> int:
        """The bytes of the smallest access to global memory, at most four."""
        functions = [f for f in self.syntax.functions.values() if not f.is_kernel]
        sizes = [4]
        for function in (self.entry, *functions):
            for one in function.instructions:
                if one.name in _ACCESSES and _NOT_GLOBAL.isdisjoint(one.mods):
                    sizes += [size_of(word) for word in one.mods if is_type(word)][-1:]
        return min(sizes)

    def may_be_idle(self, load: Instruction) -> bool:
        """Tell whether a thread may never use the value that it loads."""
        found = self._idle.get(id(load))
        if found is None:
            functions = self.syntax.functions.values()
            owner = next(f for f in functions if any(one is load for one in f.instructions))
            found = self._idle[id(load)] = only_feeds_guarded_stores(owner, load)
        return found

    def function(self, name: str) -> Function:
        """Return the function called `name` as it was parsed."""
        return self.syntax.functions[self.syntax.aliases.get(name, name)]

    def has_body(self, name: str) -> bool:
        """Tell whether the module defines the function `name`."""
        function = self.syntax.functions.get(self.syntax.aliases.get(name, name))
        return function is not None and function.tokens is not None

    def function_at(self, address: int) -> Callable[[], Code] | None:
        """Return a callable that finds the function with the address `address`."""
        name = self.module.function_name(address)
        if name is None or not self.has_body(name):
            return None
        found = name
        # Not the code itself: a table of function pointers is looked through before any of them is
        # called.
        return lambda: self.code(found)

    def is_shared(self, name: str, function: Function) -> bool:
        """Tell whether a symbol used in `function` is a shared variable."""
        name = self.syntax.aliases.get(name, name)
        return self.variables.shared_offset(name, function) is not None

    def address_of(self, name: str, function: Function) -> int:
        """Return the address of a symbol used in `function`, in its own state space."""
        name = self.syntax.aliases.get(name, name)
        # The order follows the scopes: a kernel's own parameters hide the module's declarations.
        for param in function.params if function.is_kernel else ():
            if param.name == name:
                return param.offset
        local = function.variables.get(name)
        if local is not None and local.space == "local":
            # A local variable has an address per frame. If an instruction can take one, the decoder
            # has already found it.
            raise Unsupported(f"the address of local variable {name!r} here")
        shared = self.variables.shared_offset(name, function)
        if shared is not None:
            return shared
        if name in self.syntax.functions:
            return self.module.function_address(name)
        try:
            return self.module.address(name)
        except KeyError:
            raise Unsupported(f"the symbol {name!r} is not defined") from None


class Addresses(Protocol):
    """A module whose variables and functions have addresses."""

    @property
    def image(self) -> PtxImage:
        """The loaded module."""
        raise NotImplementedError

    def address(self, name: str) -> int:
        """Return the address of a variable; raise KeyError if there is none of that name."""
        raise NotImplementedError

    def function_address(self, name: str) -> int:
        """Return the address of a function."""
        raise NotImplementedError

    def function_name(self, address: int) -> str | None:
        """Return the function with an address."""
