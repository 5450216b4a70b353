"""A configuration's ``pre_hook`` as data: its effects on arguments, if they are certain."""

from __future__ import annotations

import dis
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from culaunch._triton.upstream.target import triton_module

if TYPE_CHECKING:
    from collections.abc import Mapping

# The names that a hook may use: a method and an attribute of arguments, a method of their mapping,
# and pure functions.
_OF_ARGUMENTS = frozenset({"zero_", "block_shape", "get"})
_PURE = {"isinstance": isinstance, "min": min, "max": max, "len": len}
_DESCRIPTOR = "TensorDescriptor"
_PLAIN = (str, int, float, bool, tuple, type(None))


@dataclass(frozen=True)
class HookEffects:
    """The effects of a hook before a launch."""

    zeroes: tuple[str, ...]
    """The arguments that it sets to zero."""
    blocks: dict[str, tuple[int, ...]]
    """The blocks of tensor descriptors that it sets, as tuples of ints by argument."""


def effects_of(
    hook: Any, settings: Mapping[str, Any], kinds: Mapping[str, Any]
) -> HookEffects | None:
    """Return the effects of a hook, or None if it may have other effects.

    A hook is a function of the arguments by name. Its code may name only the functions above. Its
    closure and its defaults may hold only strings and lists of strings. A run on stand-ins must do
    nothing but set arguments to zero, and blocks of descriptors to numbers. Without other names,
    the hook can reach nothing else. Lists are read with their present contents.

    Parameters
    ----------
    hook : callable
    settings : mapping
        The constants and options that are known, by name: the hook sees their values.
    kinds : mapping
        Triton's types of the run-time arguments by name; ``"constexpr"`` for None.
    """
    code = getattr(hook, "__code__", None)
    if type(hook) is not types.FunctionType or code is None or not _is_narrow(hook, code):
        return None
    arguments = _Arguments(settings, kinds)
    namespace: dict[str, Any] = {**_PURE, "isinstance": arguments.is_instance}
    if _DESCRIPTOR in code.co_names:
        namespace[_DESCRIPTOR] = _Descriptor
    # A copy with the stand-ins' own `isinstance`, and with the current contents of lists of names.
    defaults = tuple(map(_fixed, hook.__defaults__ or ()))
    cells = tuple(types.CellType(_fixed(one.cell_contents)) for one in hook.__closure__ or ())
    copy = types.FunctionType(code, {"__builtins__": namespace}, code.co_name, defaults, cells)
    try:
        copy(arguments)
    except Exception:  # noqa: BLE001  (a hook that raises on a stand-in has no certain effects)
        return None
    if not arguments.is_certain:
        return None
    return HookEffects(tuple(dict.fromkeys(arguments.zeroed)), arguments.blocks)


def _is_narrow(hook: Any, code: types.CodeType) -> bool:
    defaults = hook.__defaults__ or ()
    # `lambda args, name=name: ...` closes over the values of its defaults.
    if not code.co_argcount <= 1 + len(defaults) or code.co_kwonlyargcount or not code.co_argcount:
        return False
    if code.co_flags & (0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200):  # *args, **kw, a generator
        return False
    try:
        closed = [cell.cell_contents for cell in hook.__closure__ or ()]
    except ValueError:  # not bound yet
        return False
    return all(map(_is_names, (*closed, *defaults))) and _names_little(code, hook.__globals__)


def _names_little(code: types.CodeType, found: Mapping[str, Any]) -> bool:
    """Whether code uses only the listed names; `found` are the globals."""
    if set(code.co_names) - _OF_ARGUMENTS - _PURE.keys() - {_DESCRIPTOR}:
        return False
    for one in code.co_consts:
        # Up to CPython 3.11, a list comprehension is a function inside the function.
        if isinstance(one, types.CodeType):
            if one.co_name != "<listcomp>" or not _names_little(one, found):
                return False
        elif not isinstance(one, _PLAIN):
            return False
    # A global may have the same name as one of these functions. It must then be that function.
    for step in dis.get_instructions(code):
        is_global = step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        if is_global and step.argval in _OF_ARGUMENTS | (_PURE.keys() & found.keys()):
            return False
        if is_global and step.argval == _DESCRIPTOR and not _is_descriptor(found.get(_DESCRIPTOR)):
            return False
        if step.opname.startswith(("STORE_GLOBAL", "DELETE_", "IMPORT_")):
            return False
        if step.opname == "STORE_DEREF" and step.argval in code.co_freevars:
            return False
    return True


def _is_names(value: Any) -> bool:
    """Whether it is a name, or a list of names."""
    many = value if type(value) in (tuple, list) else (value,)
    return all(type(one) is str for one in many)


def _fixed(value: Any) -> Any:
    return tuple(value) if type(value) is list else value


def _is_descriptor(found: Any) -> bool:
    return found is triton_module("tools.tensor_descriptor").TensorDescriptor


class _Descriptor:
    """A stand-in for Triton's class of descriptors."""


class _StandIn:
    """The argument of a hook. It records any unexpected use."""

    def __init__(self, owner: _Arguments) -> None:
        object.__setattr__(self, "_owner", owner)

    def _refuse(self, *_: object) -> NoReturn:
        self._owner.is_certain = False  # even if the hook catches the exception
        raise TypeError

    _owner: _Arguments
    __bool__ = __len__ = __iter__ = __contains__ = __hash__ = __index__ = __float__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _refuse
    __iadd__ = __isub__ = __imul__ = __matmul__ = __truediv__ = __floordiv__ = _refuse
    __getitem__ = __setitem__ = __delitem__ = __call__ = __format__ = __str__ = __repr__ = _refuse
    __getattr__ = __setattr__ = __delattr__ = _refuse


class _Arguments(_StandIn):
    """The mapping of arguments by name."""

    def __init__(self, settings: Mapping[str, Any], kinds: Mapping[str, Any]) -> None:
        for name, value in {
            "_settings": settings, "_kinds": kinds, "_owner": self, "zeroed": [], "blocks": {},
            "is_certain": True,
        }.items():  # fmt: skip
            object.__setattr__(self, name, value)

    _settings: Mapping[str, Any]
    _kinds: Mapping[str, Any]
    zeroed: list[str]
    blocks: dict[str, tuple[int, ...]]
    is_certain: bool

    def __setattr__(self, name: str, value: Any) -> None:  # type: ignore[override]
        object.__setattr__(self, name, value)

    def __getitem__(self, name: object) -> Any:  # type: ignore[override]
        if type(name) is str and name in self._settings:
            value = self._settings[name]
            if isinstance(value, _PLAIN):
                return value
        if type(name) is not str or name not in self._kinds:
            self._refuse()
        # A hook sees None for a folded argument, and must not read any other value.
        kind = self._kinds[name]
        return None if kind == "constexpr" else _Argument(self, name, kind)

    def get(self, name: object, default: object = None) -> Any:
        """Look one up. Only arguments and the settings of a configuration exist."""
        if type(name) is str and name not in self._settings and name not in self._kinds:
            return default
        return self[name]

    def is_instance(self, value: object, kind: object) -> bool:
        """Say whether an argument is a descriptor. This is known only of descriptors."""
        if value is None:
            return False
        if type(value) is not _Argument or kind is not _Descriptor:
            self._refuse()
        return value.is_descriptor


class _Argument(_StandIn):
    """One argument."""

    def __init__(self, owner: _Arguments, name: str, kind: Any) -> None:
        super().__init__(owner)
        object.__setattr__(self, "_name", name)
        is_descriptor = isinstance(kind, str) and kind.startswith("tensordesc<")
        object.__setattr__(self, "is_descriptor", is_descriptor)

    _name: str
    is_descriptor: bool

    def zero_(self) -> _StandIn:
        """Remember that it was set to zero."""
        if self.is_descriptor:
            self._refuse()
        self._owner.zeroed.append(self._name)
        return _StandIn(self._owner)

    def __setattr__(self, name: str, value: Any) -> None:  # type: ignore[override]
        is_block = name == "block_shape" and self.is_descriptor and type(value) in (list, tuple)
        if not is_block or not all(type(size) is int for size in value):
            self._refuse()
        self._owner.blocks[self._name] = tuple(value)
