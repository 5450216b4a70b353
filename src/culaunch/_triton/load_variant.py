"""Load a compiled Triton kernel for the native dispatcher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.cuda import DeviceAttribute, FunctionAttribute
from culaunch._core import Driver, Kernel, Module, TritonVariant
from culaunch._errors import DriverError
from culaunch._image import Image
from culaunch._launch.no_code import explained
from culaunch._triton.parameter_sources import parameter_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._triton.launch_facts import LaunchFacts

# CUtensorMapDataType where it differs from the number that the compiler gives.
_HOST_TYPES = {8: 10, 9: 8, 10: 9}
_WARP = 32


def load_variant(
    driver: Driver,
    data: bytes,
    facts: LaunchFacts,
    types: Sequence[Any],
    constants: dict[str, Any],
    result: object,
) -> TritonVariant:
    """Load an image and prepare its launch.

    Parameters
    ----------
    driver : Driver
    data : bytes
        A cubin, or PTX.
    facts : LaunchFacts
    types : sequence
        As for :func:`parameter_sources`.
    constants : dict
        What the variant was compiled with, by name: a grid function is given it.
    result : object
        What a call gives.

    Raises
    ------
    ImageError
        If the image's parameters are not what the facts say.
    DriverError
        If the driver refuses the image.
    """
    try:
        module = Module(driver, data)
    except DriverError as error:
        raise explained(error, Image(data), driver) from None
    kernel = Kernel(module, facts.name, None)
    layout = module.layout(facts.name)
    assert layout is not None
    sources = parameter_sources(types, facts, layout)
    layouts = tuple(
        (
            one.swizzle,
            one.elem_size,
            _HOST_TYPES.get(one.elem_type, one.elem_type),
            one.block_size,
            one.fp4_padded,
        )
        for one in facts.descriptors
    )
    return TritonVariant(
        kernel,
        tuple(source.packed for source in sources),
        layouts,
        facts.num_warps * _WARP,
        facts.num_ctas,
        facts.shared,
        facts.launch_cooperative_grid,
        facts.launch_pdl,
        facts.global_scratch_size,
        facts.global_scratch_align,
        facts.profile_scratch_size,
        facts.profile_scratch_align,
        constants,
        result,
    )


def resources_missing(
    driver: Driver, variant: TritonVariant, facts: LaunchFacts, device: int
) -> tuple[int, int, str] | None:
    """Return (needed, available, of what) where a device cannot run the kernel at all."""
    shared = driver.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device)
    if facts.shared > shared:
        return facts.shared, shared, "shared memory"
    threads = variant.kernel._attribute(FunctionAttribute.MAX_THREADS_PER_BLOCK, device)  # noqa: SLF001
    if facts.num_warps * _WARP > threads:
        return facts.num_warps * _WARP, threads, "threads"
    return None
