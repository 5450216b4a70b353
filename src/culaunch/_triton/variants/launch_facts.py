"""The facts about a compiled Triton kernel that a launch needs, from its metadata."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from culaunch._triton.upstream.versions import NEWEST_KNOWN, parse_version

if TYPE_CHECKING:
    from collections.abc import Mapping

# CUtensorMapDataType, if it differs from the compiler's number.
_DRIVER_TYPES = {8: 10, 9: 8, 10: 9}
# Older versions omit these if they are unused. A newer version might rename them.
_ALWAYS = (
    "num_ctas", "global_scratch_size", "global_scratch_align", "profile_scratch_size",
    "profile_scratch_align", "launch_cooperative_grid", "launch_pdl", "tensordesc_meta",
)  # fmt: skip


@dataclass(frozen=True)
class LaunchFacts:
    """Everything of Triton's metadata that a launch depends on.

    Attributes
    ----------
    name : str
        The kernel's name in the image.
    triton_version : str
        The version of Triton that compiled it: the hidden parameters depend on it.
    num_warps : int
        Of the compiled kernel: warp specialization uses more warps than requested.
    num_ctas : int
        Blocks of a cluster.
    num_stages : int
        Stages of the software pipelining; 0 if unknown. No launch depends on it, but a call may
        name it.
    shared : int
        Dynamic shared memory of a block in bytes.
    global_scratch_size, profile_scratch_size : int
        Bytes for each block that the launch must allocate.
    global_scratch_align, profile_scratch_align : int
    launch_cooperative_grid, launch_pdl : bool
    descriptors : tuple of DescriptorLayout
    """

    name: str
    triton_version: str
    num_warps: int = 4
    num_ctas: int = 1
    shared: int = 0
    global_scratch_size: int = 0
    global_scratch_align: int = 1
    profile_scratch_size: int = 0
    profile_scratch_align: int = 1
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    num_stages: int = 0
    descriptors: tuple[DescriptorLayout, ...] = ()

    @classmethod
    def from_metadata(cls, metadata: Any, version: str | None = None) -> LaunchFacts:
        """Read Triton's metadata: a mapping (its JSON), or the named tuple of a kernel."""
        given = metadata if isinstance(metadata, dict) else metadata._asdict()
        # Some versions have this in two places, others in one of them.
        clusters = tuple(given.get("cluster_dims", ()))
        ctas = int(given.get("num_ctas", 1))
        if clusters and clusters[0] * clusters[1] * clusters[2] not in (1, ctas):
            raise ValueError(f"cluster_dims {clusters} and num_ctas {ctas} disagree")
        found = version or given.get("triton_version")
        if not isinstance(found, str):
            raise ValueError("the metadata has no triton_version, on which the parameters depend")
        missing = [name for name in _ALWAYS if name not in given]
        if missing and parse_version(found) > NEWEST_KNOWN:
            known = ".".join(map(str, NEWEST_KNOWN))
            raise ValueError(
                f"the metadata of Triton {found} has no {', '.join(missing)}. It is newer than the "
                f"newest version that culaunch knows, {known}: compile with an older one, or "
                "update culaunch"
            )
        return cls(
            name=str(given["name"]),
            triton_version=found,
            num_warps=int(given["num_warps"]),
            num_ctas=ctas,
            shared=int(given["shared"]),
            global_scratch_size=int(given.get("global_scratch_size") or 0),
            global_scratch_align=int(given.get("global_scratch_align") or 1),
            profile_scratch_size=int(given.get("profile_scratch_size") or 0),
            profile_scratch_align=int(given.get("profile_scratch_align") or 1),
            launch_cooperative_grid=bool(given.get("launch_cooperative_grid", False)),
            launch_pdl=bool(given.get("launch_pdl", False)),
            num_stages=int(given.get("num_stages") or 0),
            descriptors=tuple(
                DescriptorLayout.from_metadata(meta) for meta in given.get("tensordesc_meta") or ()
            ),
        )

    @property
    def hidden(self) -> int:
        """The number of scratch pointers after the arguments: none, one, or two."""
        version = parse_version(self.triton_version)
        return 0 if version < (3, 3) else 1 if version < (3, 5) else 2

    def as_dict(self) -> dict[str, Any]:
        """Return them for a manifest."""
        return asdict(self)


@dataclass(frozen=True)
class DescriptorLayout:
    """The compiler's encoding of one host-side tensor descriptor (TMA, sm_90 and newer)."""

    swizzle: int
    elem_size: int
    elem_type: int
    block_size: tuple[int, ...]
    fp4_padded: bool

    @property
    def driver_type(self) -> int:
        """The driver's number of the element type."""
        return _DRIVER_TYPES.get(self.elem_type, self.elem_type)

    @classmethod
    def from_metadata(cls, meta: Mapping[str, Any]) -> DescriptorLayout:
        """Read one entry of ``tensordesc_meta``."""
        if meta.get("is_im2col", False):
            raise ValueError(
                "this kernel takes a tensor descriptor in im2col mode, which culaunch does not "
                "encode: launch it through Triton"
            )
        return cls(
            swizzle=int(meta["swizzle"]),
            elem_size=int(meta["elem_size"]),
            elem_type=int(meta["elem_type"]),
            block_size=tuple(int(size) for size in meta["block_size"]),
            fp4_padded=bool(meta["fp4_padded"]),
        )
