"""Valid names of settings: constants are the kernel's parameters, options are Triton's."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._triton.upstream.target import triton_module
from culaunch._triton.upstream.warned import warnings_named

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

# The limits of devices and libraries; the compiler itself checks less.
_RANGES = {"num_warps": (1, 32), "num_ctas": (1, 16), "num_stages": (0, 1000), "maxnreg": (1, 255)}
# Triton 3.9 warns if this option is missing, because its default will change. Setting it avoids
# further warnings; compilation uses the installed Triton's default.
_ASKED = {"enable_fp_fusion": True}


def check_constants(function: Any, constants: Collection[str]) -> None:
    """Refuse constants that are not parameters of the kernel.

    Raises
    ------
    ValueError
        Naming them, and the kernel's parameters.
    """
    names = function.arg_names
    unknown = sorted(set(constants) - set(names))
    if unknown:
        raise ValueError(
            f"{function.__name__} has no parameter {', '.join(unknown)}{_hint(unknown, names)}: "
            f"it has {', '.join(names)}"
        )


def check_config(function: Any, config: Mapping[str, Any]) -> None:
    """Refuse a configuration that sets a run-time argument, which a variant cannot contain.

    Raises
    ------
    ValueError
        Naming the argument.
    """
    for one in function.params:
        value = config.get(one.name)
        # As everywhere, only None and 1 are folded.
        if not one.is_constexpr and not (value is None or (type(value) is int and value == 1)):
            raise ValueError(
                f"the configuration {dict(config)} of {function.__name__} sets {one.name}, which "
                "is an argument of each launch and cannot be saved. Declare it tl.constexpr, or "
                "compile the kernel below the autotuner (.fn), and pass it in each call"
            )


def check_options(function: Any, options: Mapping[str, Any], backend: Any, where: str) -> None:
    """Refuse options that Triton's compiler does not know, and values that it does not accept.

    Parameters
    ----------
    function : JITFunction
        The kernel, for the message.
    options : mapping
    backend : triton.backends.compiler.BaseBackend
        Of the target.
    where : str
        Where they are set, for the message.

    Raises
    ------
    ValueError
        Naming them, and the valid ones.
    """
    # Triton's compiler ignores unknown names. An object made without options shows all names that
    # it has.
    with warnings_named(function.__name__):
        defaults = vars(backend.parse_options(dict(_ASKED)))
    known = sorted(defaults)
    unknown = sorted(set(options) - set(known))
    if unknown:
        candidates = [*function.arg_names, *known]
        raise ValueError(
            f"{', '.join(unknown)} of {where} is neither a parameter of {function.__name__} nor "
            f"an option of Triton {triton_module().__version__}{_hint(unknown, candidates)}: it "
            f"has {', '.join(function.arg_names)}; the options are {', '.join(known)}"
        )
    for name, value in options.items():
        _check_value(name, value, defaults[name], where)
    try:
        with warnings_named(function.__name__):
            backend.parse_options({**_ASKED, **options})
    except Warning:
        raise
    except Exception as error:
        raise ValueError(f"{where}: {error}") from error


def _check_value(name: str, value: Any, default: Any, where: str) -> None:
    """Refuse values that Triton accepts, but that cannot be launched, or fail deep inside it."""
    if name in _RANGES:
        least, most = _RANGES[name]
        if value is None and default is None:
            return
        if type(value) is not int or not least <= value <= most:
            raise ValueError(
                f"{name} of {where} must be an int from {least} to {most} (got {spell(value)})"
            )
    elif type(default) is bool and type(value) is not bool:
        raise ValueError(f"{name} of {where} must be True or False (got {spell(value)})")


def _hint(unknown: Iterable[str], known: Collection[str]) -> str:
    near = [match for name in unknown for match in difflib.get_close_matches(name, known, 1)]
    return f" (did you mean {', '.join(near)}?)" if near else ""
