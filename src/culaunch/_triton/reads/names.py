"""Looks up names in a function's code as the function would, with guards."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from culaunch._triton.reads.purity import Unknown

if TYPE_CHECKING:
    from culaunch._triton.reads.instructions import Instructions
    from culaunch._triton.reads.reads import Reads


class NamesInCode:
    """The globals and the closed-over variables of a function.

    Parameters
    ----------
    function : function
    instructions : Instructions
        Of its code: attributes of modules are taken from there.
    reads : Reads
        The values of the names must not change: the guards for that are added to it.
    """

    def __init__(
        self, function: types.FunctionType, instructions: Instructions, reads: Reads
    ) -> None:
        self._function: Any = function  # not all type checkers know its __builtins__
        self._instructions = instructions
        self._reads = reads

    def of_global(self, name: str) -> Any:
        """Return the present value of a global, or of a module attribute after it."""
        namespace = self._function.__globals__
        if type(namespace) is not dict:
            raise Unknown(f"its globals are a {type(namespace).__qualname__}")
        if name in namespace:
            found = self._entry(namespace, name)
        else:
            # A builtin. A global with this name would hide it.
            self._reads.guards.append((namespace, name, False, None))
            own: dict[str, Any] = self._function.__builtins__
            found = self._entry(own, name)
        return self._of_module(found, name)

    def closed_over(self, name: str) -> Any:
        """Return the present value of a closed-over variable, or of a module attribute after it."""
        function = self._function
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        if name not in cells:
            raise Unknown(f"it uses {name}")
        try:
            found = cells[name].cell_contents
        except ValueError:
            raise Unknown(f"it uses {name}, which is not set") from None
        self._reads.cells.append((cells[name], found))
        return self._of_module(found, name)

    def _of_module(self, found: Any, name: str) -> Any:
        """Follow attributes of modules that are loaded next."""
        while isinstance(found, types.ModuleType):
            following = self._instructions.ahead(1)
            if not following or following[0].opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                raise Unknown(f"it uses the module {name}")
            self._instructions.take(1)
            attribute = following[0].argval
            if _decides(type(found), attribute):
                raise Unknown(f"it uses {name}.{attribute}, which is not a plain attribute")
            found = self._entry(vars(found), attribute)
        return found

    def _entry(self, namespace: dict[str, Any], name: str) -> Any:
        if name not in namespace:
            raise Unknown(f"it uses {name}, which does not exist")
        found = namespace[name]
        self._reads.guards.append((namespace, name, True, found))
        return found


def _decides(kind: type, name: str) -> bool:
    """Whether a module's class may override an attribute of its namespace."""
    return any(
        name in vars(base) or (base not in (types.ModuleType, object) and _ASKED in vars(base))
        for base in kind.__mro__
    )


_ASKED = "__getattribute__"
