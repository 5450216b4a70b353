"""A configuration's ``pre_hook`` as data: which arguments it sets to zero, if that is certain."""

from __future__ import annotations

import dis
import types
from typing import Any, NoReturn

_METHOD = "zero_"


def zeroed_by(hook: Any) -> tuple[str, ...] | None:
    """Return the arguments that a hook sets to zero, if that is all that it can do; else None.

    A hook is a function of the arguments by name. It is certain where its code names nothing but
    the method ``zero_``, closes over nothing but strings, and where running it on stand-ins shows
    nothing but calls of that method on arguments: without other names it can reach nothing else.
    """
    code = getattr(hook, "__code__", None)
    if type(hook) is not types.FunctionType or code is None or not _is_narrow(hook, code):
        return None
    arguments = _Arguments()
    try:
        hook(arguments)
    except Exception:  # noqa: BLE001  (whatever a hook does with a stand-in, it is not certain)
        return None
    return tuple(dict.fromkeys(arguments.zeroed)) if arguments.is_certain else None


def _is_narrow(hook: Any, code: types.CodeType) -> bool:
    if code.co_argcount != 1 or code.co_kwonlyargcount or hook.__defaults__:
        return False
    if code.co_flags & (0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200):  # *args, **kw, a generator
        return False
    if set(code.co_names) - {_METHOD}:
        return False
    plain = (str, int, float, bool, tuple, type(None))
    if not all(isinstance(one, plain) for one in code.co_consts):
        return False  # a function within the function
    for step in dis.get_instructions(code):
        if step.argval == _METHOD and step.opname not in ("LOAD_METHOD", "LOAD_ATTR", "LOAD_CONST"):
            return False  # a global of that name
    try:
        closed = [cell.cell_contents for cell in hook.__closure__ or ()]
    except ValueError:  # not bound yet
        return False
    return all(type(one) is str or _is_names(one) for one in closed)


def _is_names(value: object) -> bool:
    return type(value) is tuple and all(type(one) is str for one in value)


class _StandIn:
    """What a hook is given: it remembers whether anything but the expected was asked of it."""

    def __init__(self, owner: _Arguments) -> None:
        self._owner = owner

    def _refuse(self, *_: object) -> NoReturn:
        self._owner.is_certain = False  # even where the hook catches what is raised
        raise TypeError

    __bool__ = __len__ = __iter__ = __contains__ = __hash__ = __index__ = __float__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _refuse
    __iadd__ = __isub__ = __imul__ = __matmul__ = __truediv__ = __floordiv__ = _refuse
    __getitem__ = __setitem__ = __delitem__ = __call__ = __format__ = __str__ = __repr__ = _refuse
    __getattr__ = _refuse


class _Arguments(_StandIn):
    """The mapping of arguments by name."""

    def __init__(self) -> None:
        self.zeroed: list[str] = []
        self.is_certain = True
        super().__init__(self)

    def __getitem__(self, name: object) -> _Argument:  # type: ignore[override]
        if type(name) is not str:
            self._refuse()
        return _Argument(self, name)


class _Argument(_StandIn):
    """One argument."""

    def __init__(self, owner: _Arguments, name: str) -> None:
        super().__init__(owner)
        self._name = name

    def zero_(self) -> _StandIn:
        """Remember that it was set to zero."""
        self._owner.zeroed.append(self._name)
        return _StandIn(self._owner)
