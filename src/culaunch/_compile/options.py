"""Compiler options, typed, and how each backend spells them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from culaunch._base.checks import checked_flag, checked_list, is_text
from culaunch._base.values import spell

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\([^)]*\))?")

# What compile() must know itself, to find files for the cache key or to pick what comes back.
_OWN_KEYWORD = {
    "-I": "include_dirs=",
    "--include-path": "include_dirs=",
    "-isystem": "include_dirs=",
    "--system-include": "include_dirs=",
    "-optf": "extra_options=, one by one,",
    "--options-file": "extra_options=, one by one,",
    "-arch": "arch=",
    "--gpu-architecture": "arch=",
    "-gencode": "arch=",
    "--generate-code": "arch=",
    "-pch": "pch=",
    "--pch": "pch=",
    "--pch-dir": "pch=",
    "--create-pch": "pch=",
    "--use-pch": "pch=",
    "-dlto": "lto=",
    "--dlink-time-opt": "lto=",
    "-rdc": "relocatable=",
    "--relocatable-device-code": "relocatable=",
    "-dc": "relocatable=",
    "--device-c": "relocatable=",
}
# Options that make a compiler do something other than compile, or write files beside the image. A
# cache hit would skip that.
_PRINTS = "it makes the compiler print instead of compiling"
_WRITES = "it writes a file, which a cache hit would not; run the compiler directly"
_PHASE = "arch=, relocatable= and lto= select the output of compile()"
_REFUSED = {
    **dict.fromkeys(("-h", "--help", "-V", "--version", "--dryrun", "-dryrun"), _PRINTS),
    **dict.fromkeys(("--list-gpu-code", "-code-ls", "--list-gpu-arch", "-arch-ls"), _PRINTS),
    **dict.fromkeys(("-E", "--preprocess", "-M", "-MM", "--generate-dependencies"), _PRINTS),
    **dict.fromkeys(("-MD", "-MMD", "-MF", "--dependency-output"), _WRITES),
    **dict.fromkeys(("--generate-dependencies-with-compile", "-time", "--time"), _WRITES),
    **dict.fromkeys(("-fdevice-time-trace", "--fdevice-time-trace"), _WRITES),
    **dict.fromkeys(("-keep", "--keep", "-keep-dir", "--keep-dir"), _WRITES),
    **dict.fromkeys(("-save-temps", "--save-temps", "-clean", "--clean-targets"), _WRITES),
    **dict.fromkeys(
        ("-o", "--output-file", "-odir", "--output-directory"),
        "the image is what compile() returns; Image.save writes it",
    ),
    **dict.fromkeys(("-c", "--compile", "-cubin", "--cubin", "-ptx", "--ptx"), _PHASE),
    **dict.fromkeys(("-fatbin", "--fatbin", "-lib", "--lib", "-link", "--link"), _PHASE),
    **dict.fromkeys(("-run", "--run", "-dlink", "--device-link", "-dw", "--device-w"), _PHASE),
    **dict.fromkeys(("-ltoir", "--ltoir", "-optix-ir", "--optix-ir"), _PHASE),
    **dict.fromkeys(("-cuda", "--cuda"), _PHASE),
}


# Options that say what a keyword says, in their two spellings.
_SWITCHES = {
    "-use_fast_math": "fast_math",
    "--use_fast_math": "fast_math",
    "-lineinfo": "line_info",
    "--generate-line-info": "line_info",
    "-G": "debug",
    "--device-debug": "debug",
    "-extra-device-vectorization": "extra_device_vectorization",
    "--extra-device-vectorization": "extra_device_vectorization",
}
# Options of both compilers whose value may be the next word.
_WITH_A_WORD = frozenset(
    {"-D", "--define-macro", "-U", "--undefine-macro", "-include", "--pre-include", "-std", "--std"}
    | {"-maxrregcount", "--maxrregcount", "-Xptxas", "--ptxas-options", "-ccbin", "-Xcudafe"}
    | {"--compiler-bindir", "-Xcompiler", "--compiler-options", "-Xlinker", "--linker-options"}
    | {"-diag-suppress", "--diag-suppress", "-diag-error", "--diag-error", "-diag-warn"}
    | {"--diag-warn", "-opt-info", "--opt-info", "-default-stream", "--default-stream"}
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one compile, checked; equal options compile the same way."""

    std: str | None = None
    defines: tuple[tuple[str, str], ...] = ()
    fast_math: bool = False
    line_info: bool = False
    debug: bool = False
    maxrregcount: int | None = None
    extra_device_vectorization: bool = False
    device_as_default_execution_space: bool = False
    relocatable: bool = False
    lto: bool = False
    extra_options: tuple[str, ...] = ()

    def forced_includes(self) -> list[str]:
        """Return the headers that options include before the first line."""
        # One name for NVRTC, a list for nvcc.
        given = self._given("-include", "--pre-include")
        return list(dict.fromkeys(part for names in given for part in (names, *names.split(","))))

    def define_lines(self) -> str:
        """Return the lines that define what the options define."""
        lines = [f"#define {name} {value}\n" for name, value in self.defines]
        for macro in self._given("-D", "--define-macro"):
            name, equals, value = macro.partition("=")
            lines.append(f"#define {name} {value if equals else 1}\n")
        return "".join(lines)

    def _given(self, *flags: str) -> list[str]:
        """Return what these flags are given, in whichever way."""
        found = []
        options = iter(self.extra_options)
        for option in options:
            flag, equals, value = option.partition("=")
            if flag in flags:
                found.append(value if equals else next(options, ""))
            elif option.startswith("-D") and "-D" in flags:
                found.append(option[2:])
        return found

    def nvrtc_flags(self) -> list[str]:
        """Spell the options for NVRTC."""
        flags = self._common_flags()
        if self.debug:
            flags.append("--device-debug")
        if self.line_info:
            flags.append("--generate-line-info")
        if self.extra_device_vectorization:
            flags.append("--extra-device-vectorization")
        if self.device_as_default_execution_space:
            flags.append("--device-as-default-execution-space")
        if self.lto:
            flags.append("--dlink-time-opt")
        return [*flags, *self.extra_options]

    def nvcc_flags(self) -> list[str]:
        """Spell the options for nvcc."""
        if self.device_as_default_execution_space:
            raise ValueError("device_as_default_execution_space is an option of NVRTC, not nvcc")
        # nvcc takes a comma as the start of another macro.
        flags = [flag.replace(",", "\\,") for flag in self._common_flags()]
        if self.debug:
            flags.append("--device-debug")
        if self.line_info:
            flags.append("--generate-line-info")
        if self.extra_device_vectorization:
            flags.append("--extra-device-vectorization")
        return [*flags, *self.extra_options]

    def _common_flags(self) -> list[str]:
        flags = []
        if self.std is not None:
            flags.append(f"--std={self.std}")
        flags += [f"--define-macro={name}={value}" for name, value in self.defines]
        if self.fast_math:
            flags.append("--use_fast_math")
        if self.maxrregcount is not None:
            flags.append(f"--maxrregcount={self.maxrregcount}")
        if self.relocatable:
            flags.append("--relocatable-device-code=true")
        return flags


def make_options(
    *,
    std: str | None,
    defines: Mapping[str, object] | Iterable[str],
    maxrregcount: int | None,
    extra_options: Iterable[str],
    **switches: bool,
) -> Options:
    """Check what the caller gave and bring it to its one normal form."""
    if std is not None and not isinstance(std, str):
        raise TypeError(f"std must be a str such as 'c++17' (got {spell(std)})")
    if std is not None and (not std or not is_text(std)):
        raise ValueError(f"std must be a dialect such as 'c++17' (got {std!r})")
    check_register_count(maxrregcount)
    for name, value in switches.items():
        checked_flag(name, value)
    given = Options(
        std=std,
        defines=_normal_defines(defines),
        maxrregcount=maxrregcount,
        extra_options=checked_extra_options(extra_options),
        **switches,
    )
    return _normal(given)


def check_register_count(maxrregcount: int | None) -> None:
    if maxrregcount is None:
        return
    if isinstance(maxrregcount, bool) or not isinstance(maxrregcount, int):
        raise TypeError(f"maxrregcount must be an int (got {spell(maxrregcount)})")
    if not 0 < maxrregcount <= 255:
        raise ValueError(f"maxrregcount must be in 1 to 255 (got {spell(maxrregcount)})")


def _normal(given: Options) -> Options:
    """Take what `extra_options` say that a keyword can say as if the keyword had said it."""
    found: dict[str, object] = {}
    defines = dict(given.defines)
    # Options without a keyword go to the compiler unchanged, in their order.
    left: list[str] = []
    # Whether a macro is defined may depend on the order, which is the caller's then.
    ordered = any(one.startswith(("-U", "--undefine-macro")) for one in given.extra_options)
    options = iter(given.extra_options)
    for option in options:
        flag, equals, value = option.partition("=")
        macro = _macro(option)
        if option in _SWITCHES:
            found[_SWITCHES[option]] = True
        elif flag in ("-std", "--std") and value and given.std is None and "std" not in found:
            found["std"] = value
        elif flag in ("-maxrregcount", "--maxrregcount") and _is_number(given, found, value):
            found["maxrregcount"] = int(value)
        elif macro is not None and not ordered and macro[0] not in defines:
            defines[macro[0]] = macro[1]
        elif not equals and flag in _WITH_A_WORD:
            # The next word belongs to it, whatever it looks like.
            left += [option, *itertools.islice(options, 1)]
        else:
            left.append(option)
    return replace(
        given,
        defines=tuple(sorted(defines.items())),
        extra_options=tuple(left),
        **found,  # type: ignore[arg-type]
    )


def _macro(option: str) -> tuple[str, str] | None:
    """Return the macro that an option defines, if it does so in one word and plainly."""
    text = option.removeprefix("--define-macro=") if option.startswith("--") else option[2:]
    if text == option or not option.startswith(("-D", "--define-macro=")):
        return None
    name, equals, value = text.partition("=")
    # nvcc takes a comma as the start of another macro, and a backslash as a quote.
    if _IDENTIFIER.fullmatch(name) is None or "," in text or "\\" in text:
        return None
    return name, value if equals else "1"


def _is_number(given: Options, found: dict[str, object], value: str) -> bool:
    is_free = given.maxrregcount is None and "maxrregcount" not in found
    return is_free and value.isascii() and value.isdigit() and 0 < int(value) <= 255


def _normal_defines(defines: Mapping[str, object] | Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Bring macros to (name, text) pairs; a macro without a value is 1, as for every compiler."""
    if isinstance(defines, (str, bytes)) or not isinstance(defines, (Mapping, Iterable)):
        raise TypeError(f"defines must be a mapping or an iterable of names (got {spell(defines)})")
    items = defines.items() if isinstance(defines, Mapping) else [(name, None) for name in defines]
    normal = []
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
        normal.append((name, text))
    # Each name can occur only once, so the order has no meaning: sort for the cache key.
    return tuple(sorted(normal))


def checked_extra_options(extra: Iterable[str]) -> tuple[str, ...]:
    """Return options for a compiler or a linker that it can be given as they are."""
    checked = checked_list("extra_options", extra, "options")
    for option in checked:
        if not isinstance(option, str):
            raise TypeError(f"extra_options must hold str (got {spell(option)})")
        if not option.strip() or not is_text(option):
            raise ValueError(f"extra_options has {option!r}, which is not an option")
        flag = option.partition("=")[0]
        keyword = _OWN_KEYWORD.get("-I" if option.startswith("-I") else flag)
        if keyword is not None:
            raise ValueError(f"extra_options has {option!r}: use {keyword} for it")
        if flag in _REFUSED:
            raise ValueError(f"extra_options has {option!r}: {_REFUSED[flag]}")
    return tuple(checked)
