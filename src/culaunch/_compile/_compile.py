"""``compile``: from CUDA source to an image in one call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from culaunch._compile._arch import resolve_arch
from culaunch._compile._fatbin import combine
from culaunch._compile._nvrtc import compile_nvrtc
from culaunch._compile._options import make_options
from culaunch._compile._source import read_source
from culaunch._image import Image

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def compile(  # noqa: A001
    source: str | os.PathLike[str],
    *,
    arch: str | Iterable[str] | None = None,
    names: Iterable[str] = (),
    headers: Mapping[str, str] | None = None,
    include_dirs: Iterable[str | os.PathLike[str]] = (),
    std: str | None = None,
    defines: Mapping[str, object] | Iterable[str] = (),
    fast_math: bool = False,
    line_info: bool = False,
    debug: bool = False,
    maxrregcount: int | None = None,
    extra_device_vectorization: bool = False,
    device_as_default_execution_space: bool = False,
    extra_options: Iterable[str] = (),
    backend: Literal["nvrtc", "nvcc"] = "nvrtc",
    name: str | None = None,
) -> Image:
    """Compile CUDA source to an image."""
    unit = read_source(source, name)
    options = make_options(
        std=std,
        defines=defines,
        fast_math=fast_math,
        line_info=line_info,
        debug=debug,
        maxrregcount=maxrregcount,
        extra_device_vectorization=extra_device_vectorization,
        device_as_default_execution_space=device_as_default_execution_space,
        extra_options=extra_options,
    )
    dirs = [os.fspath(directory) for directory in include_dirs]
    flags = [*options.nvrtc_flags(), *(f"--include-path={directory}" for directory in dirs)]
    parts = [
        compile_nvrtc(
            unit.text,
            unit.name,
            arch=one,
            flags=flags,
            names=tuple(names),
            headers=headers,
        )
        for one in resolve_arch(arch)
    ]
    log = "\n".join(dict.fromkeys(part.log for part in parts if part.log))
    return Image(combine(parts, unit.name), names=parts[0].names, log=log)
