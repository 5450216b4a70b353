"""Parameter types of ``extern "C"`` kernels, whose names do not spell them.

Most are built-in types and can be read off the declaration. For others, a template is added to a
copy of the source, and the compiler's front end gives the lowered name of
``probe<decltype(kernel)>``. That name spells the kernel's type in full. If this fails or is too
slow (CUB takes seconds to read twice), the PTX still tells each parameter's class.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culaunch._compile.declarations import declared_types

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_PROBE = "culaunch_signature"
# _Z18culaunch_signatureI F[Y] v <parameters> E E vv: a template of a function type.
_LOWERED = re.compile(rf"_Z{len(_PROBE)}{_PROBE}IFY?v(?P<params>.*)EEvv")


def kernel_signatures(
    ptx: bytes, source: str, probe: Callable[[Sequence[str]], Mapping[str, str]] | None
) -> dict[str, tuple[str | None, ...]]:
    """Return the parameter types of the kernels that are not mangled.

    Parameters
    ----------
    ptx : bytes
        The PTX of the same compile.
    source : str
        The source.
    probe : callable or None
        Gives, for some kernels, the lowered names of :func:`probe_names`; None if it is too dear.
    """
    from culaunch._image import ptx_kernel_names, ptx_param_types

    plain = [name for name in ptx_kernel_names(ptx) if not name.startswith("_Z")]
    if not plain:
        return {}
    classes = {name: ptx_param_types(ptx, name) or () for name in plain}
    declared = {name: declared_types(source, name) for name in plain}
    probed = _probed([name for name in plain if declared[name] is None], probe)
    signatures: dict[str, tuple[str | None, ...]] = {}
    for name in plain:
        types = declared[name] if declared[name] is not None else probed.get(name)
        # The compiler's own count has the last word: types that do not go with it were of something
        # else.
        fits = types is not None and len(types) == len(classes[name])
        signatures[name] = types if types is not None and fits else classes[name]
    return signatures


def probe_text() -> str:
    """Return what is added to the source."""
    return f'\n#line 1 "{_PROBE}"\ntemplate <class> __global__ void {_PROBE}() {{}}\n'


def probe_names(kernels: Sequence[str]) -> dict[str, str]:
    """Return the name expressions to ask for, by kernel."""
    return {kernel: f"{_PROBE}<decltype({kernel})>" for kernel in kernels}


def _probed(
    kernels: Sequence[str], probe: Callable[[Sequence[str]], Mapping[str, str]] | None
) -> dict[str, tuple[str, ...]]:
    if not kernels or probe is None:
        return {}
    lowered = probe(kernels)
    if not lowered and len(kernels) > 1:
        # One that cannot be named from the outside spoils it for all: ask for each by itself.
        lowered = {name: found for name in kernels for found in probe([name]).values()}
    spelled = {name: _spelled_types(found) for name, found in lowered.items()}
    return {name: types for name, types in spelled.items() if types is not None}


def _spelled_types(lowered: str) -> tuple[str, ...] | None:
    match = _LOWERED.fullmatch(lowered)
    if match is None:
        return None
    from culaunch._image import mangled_param_types

    # A member of a scope with the template's name: back references then count the same.
    return mangled_param_types(f"_ZN{len(_PROBE)}{_PROBE}1fE{match['params']}")
