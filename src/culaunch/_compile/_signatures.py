"""Parameter types of ``extern "C"`` kernels, whose names do not spell them.

The compiler knows them. A template is added to a copy of the source, and the front end alone is
asked for the lowered name of ``probe<decltype(kernel)>``: that name spells the kernel's type in
full. Where that fails, the PTX tells at least each parameter's class.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ENTRY = re.compile(rb"^[ \t]*(?:\.(?:visible|weak)[ \t]+)*\.entry[ \t]+([\w$]+)", re.MULTILINE)
_PROBE = "culaunch_signature"
# _Z18culaunch_signatureI F[Y] v <parameters> E E vv: a template of a function type.
_LOWERED = re.compile(rf"_Z{len(_PROBE)}{_PROBE}IFY?v(?P<params>.*)EEvv")


def kernel_signatures(
    ptx: bytes, probe: Callable[[Sequence[str]], Mapping[str, str]]
) -> dict[str, tuple[str | None, ...]]:
    """Give the parameter types of the kernels that are not mangled.

    Parameters
    ----------
    ptx : bytes
        The PTX of the same compile.
    probe : callable
        Gives, for some kernels, the lowered names of :func:`probe_names`.
    """
    plain = [name.decode() for name in _ENTRY.findall(ptx) if not name.startswith(b"_Z")]
    if not plain:
        return {}
    from culaunch._image import ptx_param_types

    lowered = probe(plain)
    if not lowered and len(plain) > 1:
        # One that cannot be named from the outside spoils it for all: ask for each by itself.
        lowered = {name: found for name in plain for found in probe([name]).values()}
    signatures: dict[str, tuple[str | None, ...]] = {}
    for name in plain:
        classes = ptx_param_types(ptx, name)
        types = _spelled_types(lowered.get(name, ""))
        if types is not None and classes is not None and len(types) == len(classes):
            signatures[name] = types
        elif classes is not None:
            signatures[name] = classes
    return signatures


def probe_text() -> str:
    """Give what is added to the source."""
    return f'\n#line 1 "{_PROBE}"\ntemplate <class> __global__ void {_PROBE}() {{}}\n'


def probe_names(kernels: Sequence[str]) -> dict[str, str]:
    """Give the name expressions to ask for, by kernel."""
    return {kernel: f"{_PROBE}<decltype({kernel})>" for kernel in kernels}


def _spelled_types(lowered: str) -> tuple[str, ...] | None:
    match = _LOWERED.fullmatch(lowered)
    if match is None:
        return None
    from culaunch._image import mangled_param_types

    # A member of a scope with the template's name: back references then count the same.
    return mangled_param_types(f"_ZN{len(_PROBE)}{_PROBE}1fE{match['params']}")
