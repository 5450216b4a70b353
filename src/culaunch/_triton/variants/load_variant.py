"""Load a compiled Triton kernel for the native dispatcher."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from culaunch._base.cuda import DeviceAttribute, FunctionAttribute
from culaunch._core import Kernel, TritonVariant
from culaunch._errors import ImageError
from culaunch._launch.formats.dlpack import TypeCode
from culaunch._launch.modules.loading import load_image
from culaunch._launch.private_members import core_of, kernel_attribute
from culaunch._launch.signatures.parameter_type import UNKNOWN, ParameterType, TypeClass
from culaunch._launch.signatures.signature import Parameter, Signature
from culaunch._triton.variants.access import pointer_access
from culaunch._triton.variants.parameter_sources import GLOBAL, VALUE, parameter_sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from culaunch._core import Driver, Module
    from culaunch._image import Image
    from culaunch._triton.variants.launch_facts import LaunchFacts
    from culaunch._triton.variants.parameter_sources import ParameterSource

_WARP = 32


def load_variant(
    driver: Driver,
    image: Image,
    facts: LaunchFacts,
    types: Sequence[Any],
    constants: dict[str, Any],
    result: object,
    ttir: str = "",
) -> TritonVariant:
    """Load an image and prepare its launch.

    Parameters
    ----------
    driver : Driver
    image : Image
        A cubin, or PTX.
    facts : LaunchFacts
    types : sequence
        As for :func:`parameter_sources`.
    constants : dict
        The constants of the variant, by name: a grid function gets them.
    result : object
        The result of a call.
    ttir : str, optional
        Triton's intermediate representation of it, which tells how it accesses its arrays.

    Raises
    ------
    ImageError
        If the image has no such kernel, or its parameters are not what the facts say.
    DriverError
        If the driver refuses the image.
    """
    module = load_image(driver, image)
    # Compare the image's parameters with Triton's known ones. A version with another hidden
    # parameter would otherwise read past the end of the buffer.
    layout = module.layout(facts.name)
    if layout is None:
        raise ImageError(
            f"the image has no kernel {facts.name!r:.80}: it belongs to another variant"
        )
    sources = parameter_sources(types, facts, layout)
    kernel = VariantKernel(module, image, facts.name, sources, ttir)
    layouts = tuple(
        (
            one.swizzle,
            one.elem_size,
            one.driver_type,
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


class VariantKernel(Kernel):
    """The kernel of a variant. Its parameters have the types that Triton compiled for."""

    def __new__(
        cls,
        module: Module,
        image: Image,
        name: str,
        sources: Sequence[ParameterSource],
        ttir: str,
    ) -> Self:
        """Make a variant of a kernel with the given `sources` of its parameters."""
        self = super().__new__(cls, module, name, None)
        self._sources = tuple(sources)
        self._ttir = ttir
        self.module = SimpleNamespace(_core=module, image=image)
        return self

    module: SimpleNamespace
    _sources: tuple[ParameterSource, ...]
    _ttir: str

    @functools.cached_property
    def signature(self) -> Signature:
        """Its parameters, with their accesses to arrays if the TTIR shows them."""
        layout = core_of(self.module).layout(self.name)
        assert layout is not None  # the kernel exists, because this name found it
        access = self._access()
        parameters = tuple(
            Parameter(offset, size, None, _type_of(source, access[i]))
            for i, ((offset, size), source) in enumerate(zip(layout, self._sources, strict=True))
        )
        return Signature(parameters, "image")

    @property
    def demangled(self) -> str:
        """Its name."""
        return self.name

    def _access(self) -> Sequence[str | None]:
        values = [source.part for source in self._sources if source.part < GLOBAL]
        found = pointer_access(self._ttir)
        hidden = len(self._sources) - len(values)
        # TTIR lists the function's parameters. If they do not match the image's one to one,
        # accesses stay unknown: descriptors are split, tuples flattened, ones folded.
        if len(found) != len(values) or any(part != VALUE for part in values):
            return [None] * len(self._sources)
        return [*found, *[None] * hidden]


def _type_of(source: ParameterSource, access: str | None) -> ParameterType:
    if source.part != VALUE:
        return UNKNOWN
    if source.type.startswith("*") and access in ("read", "write"):
        return ParameterType(TypeClass.POINTER, 8, may_write=access == "write")
    name, bits = source.type, 8 * source.size
    if name in ("u1", "i1"):
        return ParameterType(TypeClass.BOOL, 1, TypeCode.BOOL, 8)
    if name.startswith(("fp", "f")):
        return ParameterType(TypeClass.FLOAT, source.size, TypeCode.FLOAT, bits)
    if name.startswith("i"):
        return ParameterType(TypeClass.SIGNED, source.size, TypeCode.INT, bits)
    if name.startswith("u"):
        return ParameterType(TypeClass.UNSIGNED, source.size, TypeCode.UINT, bits)
    return UNKNOWN


def resources_missing(
    driver: Driver, variant: TritonVariant, facts: LaunchFacts, device: int
) -> tuple[int, int, str] | None:
    """Return (needed, available, resource) if a device cannot run the kernel at all."""
    shared = driver.attribute(DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device)
    if facts.shared > shared:
        return facts.shared, shared, "shared memory"
    threads = kernel_attribute(variant.kernel, FunctionAttribute.MAX_THREADS_PER_BLOCK, device)
    if facts.num_warps * _WARP > threads:
        return facts.num_warps * _WARP, threads, "threads"
    return None
