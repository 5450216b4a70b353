"""A set's launch in any configuration: the C signature of Triton's own tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._triton.c_output.function import CFunction


class CDefault:
    """The function that launches like a C function, but without a configuration.

    Its name is the one that Triton's linker (``triton/tools/link.py``) gives it.

    Parameters
    ----------
    function : CFunction
    """

    def __init__(self, function: CFunction) -> None:
        self.name = f"{function.name}_default"
        self.parameter_list = function.parameters_with()
        self.arguments = function.arguments_with()
        self._function = function

    @property
    def declaration(self) -> str:
        """Its declaration, without the semicolon."""
        return f"CUresult {self.name}({self.parameter_list})"

    @property
    def body(self) -> str:
        """Its definition."""
        called = f"{self._function.name}({self._function.arguments_with('NULL')})"
        return f"{self.declaration} {{\n  return {called};\n}}\n"
