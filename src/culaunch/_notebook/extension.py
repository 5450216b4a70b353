"""The magics ``%%cu`` and ``%%culaunch_profile``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from culaunch._base.optional import optional
from culaunch._notebook.kernels import bind_kernels
from culaunch._notebook.options import compile_options, profile_name
from culaunch._profile.recording import launches

if TYPE_CHECKING:
    from culaunch._notebook.options import CompileOptions


def load_ipython_extension(shell: Any) -> None:
    """Register ``%%cu`` and ``%%culaunch_profile``: IPython calls it for ``%load_ext culaunch``.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
    """

    def cu(line: str, cell: str) -> None:
        """Compile a cell of CUDA C++; its kernels become variables.

        ``%%cu [INSTANCE ...] [--arch ARCH] [--option OPTION] [--module NAME]``

        INSTANCE is an instance of a template, such as ``scale<float>``. ``--option`` may be
        repeated. ``--module`` also binds the module.
        """
        options: CompileOptions = _checked(compile_options, line)
        for name, kernel in _checked(bind_kernels, cell, options).items():
            shell.user_ns[name] = kernel

    def culaunch_profile(line: str, cell: str) -> Any:
        """Run a cell, and show the profile of its launches.

        ``%%culaunch_profile [NAME]``: NAME becomes the profile.
        """
        name = _checked(profile_name, line)
        try:
            with launches() as profile:
                result = _run(shell, cell)
        finally:  # a cell that raises also has a profile
            if name:
                shell.user_ns[name] = profile
        display = optional("IPython.display", "%%culaunch_profile", "ipython")
        display.display(profile)
        return result

    shell.register_magic_function(cu, "cell", "cu")
    shell.register_magic_function(culaunch_profile, "cell", "culaunch_profile")


def _checked(function: Any, *args: Any) -> Any:
    """Call a function, whose ValueError is a wrong use of a magic."""
    errors = optional("IPython.core.error", "%load_ext culaunch", "ipython")
    try:
        return function(*args)
    except ValueError as error:
        raise errors.UsageError(str(error)) from None


def _run(shell: Any, cell: str) -> Any:
    """Run a cell in the user's namespace; return the value of an expression at its end."""
    tree = ast.parse(shell.transform_cell(cell))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<profiled cell>", "exec"), shell.user_ns)  # noqa: S102 - the user's own cell
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    code = compile(ast.Expression(last.value), "<profiled cell>", "eval")
    return eval(code, shell.user_ns)  # noqa: S307
