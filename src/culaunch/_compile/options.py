"""Compiler options: checked, and in their one normal form (``include/culaunch/jit/options.h``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from culaunch._base.checks import checked_flag, checked_list, is_text
from culaunch._base.values import spell
from culaunch._core import normal_options, why_refused

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\([^)]*\))?")
_DEVICE_DEFAULT = "--device-as-default-execution-space"
_LTO = "--dlink-time-opt"


@dataclass(frozen=True)
class Options:
    """The options of one compile, checked; equal options compile the same way."""

    own: tuple[str, ...]
    """Flags that keywords can express, in NVRTC's spelling."""
    extra: tuple[str, ...]
    """The others, as they were given."""
    forced_includes: tuple[str, ...]
    """Headers that are included before the first line, as ``"name``."""
    define_lines: str
    """The lines of the macros that the options define."""

    @property
    def lto(self) -> bool:
        """Whether the output is LTO-IR."""
        return _LTO in self.own

    @property
    def shows_paths(self) -> bool:
        """Whether the image records the place of its source."""
        return "--device-debug" in self.own or "--generate-line-info" in self.own

    def nvrtc_flags(self) -> list[str]:
        """Spell the options for NVRTC."""
        return [*self.own, *self.extra]

    def nvcc_flags(self) -> list[str]:
        """Spell the options for nvcc."""
        if _DEVICE_DEFAULT in self.own:
            raise ValueError("device_as_default_execution_space is an option of NVRTC, not nvcc")
        # nvcc reads a comma as the start of another macro.
        own = [flag.replace(",", "\\,") for flag in self.own if flag != _LTO]
        return [*own, *self.extra]


def make_options(
    *,
    std: str | None = None,
    defines: Mapping[str, object] | Iterable[str] = (),
    maxrregcount: int | None = None,
    extra_options: Iterable[str] = (),
    fast_math: bool = False,
    line_info: bool = False,
    debug: bool = False,
    extra_device_vectorization: bool = False,
    device_as_default_execution_space: bool = False,
    relocatable: bool = False,
    lto: bool = False,
) -> Options:
    """Check the caller's argument, and return its normal form."""
    if std is not None and not isinstance(std, str):
        raise TypeError(f"std must be a str such as 'c++17' (got {spell(std)})")
    if std is not None and (not std or not is_text(std)):
        raise ValueError(f"std must be a dialect such as 'c++17' (got {std!r})")
    check_register_count(maxrregcount)
    switches = (
        checked_flag("fast_math", fast_math),
        checked_flag("line_info", line_info),
        checked_flag("debug", debug),
        checked_flag("extra_device_vectorization", extra_device_vectorization),
        checked_flag("device_as_default_execution_space", device_as_default_execution_space),
        checked_flag("relocatable", relocatable),
        checked_flag("lto", lto),
    )
    macros = _normal_defines(defines)
    extra = checked_extra_options(extra_options)
    return Options(*normal_options(std or "", macros, maxrregcount or 0, switches, extra))


def check_register_count(maxrregcount: int | None) -> None:
    if maxrregcount is None:
        return
    if isinstance(maxrregcount, bool) or not isinstance(maxrregcount, int):
        raise TypeError(f"maxrregcount must be an int (got {spell(maxrregcount)})")
    if not 0 < maxrregcount <= 255:
        raise ValueError(f"maxrregcount must be in 1 to 255 (got {spell(maxrregcount)})")


def _normal_defines(defines: Mapping[str, object] | Iterable[str]) -> dict[str, str]:
    """Return the texts of macros. A macro without a value is 1, as for every compiler."""
    if isinstance(defines, (str, bytes)) or not isinstance(defines, (Mapping, Iterable)):
        raise TypeError(f"defines must be a mapping or an iterable of names (got {spell(defines)})")
    items = defines.items() if isinstance(defines, Mapping) else [(name, None) for name in defines]
    normal = {}
    for name, value in items:
        if not isinstance(name, str) or _IDENTIFIER.fullmatch(name) is None:
            raise ValueError(
                f"defines has {name!r}, which is not a macro name; "
                "write {'NAME': value}, or ['NAME'] for a macro that is 1"
            )
        if value is None or value is True:
            text = "1"
        elif value is False:
            text = "0"
        elif isinstance(value, (str, int, float)):
            text = str(value)
        else:
            raise TypeError(f"defines[{name!r}] must be a str, int, float, bool or None")
        if not is_text(text):
            raise ValueError(f"defines[{name!r}] must be text (got {text!r:.100})")
        normal[name] = text
    return normal


def checked_extra_options(extra: Iterable[str]) -> tuple[str, ...]:
    """Return options that are passed to a compiler or a linker unchanged."""
    checked = checked_list("extra_options", extra, "options")
    for option in checked:
        if not isinstance(option, str):
            raise TypeError(f"extra_options must contain only str (got {spell(option)})")
        why = why_refused(option) if is_text(option) else "it is not an option"
        if why:
            raise ValueError(f"extra_options has {option!r}: {why}")
    return tuple(checked)
