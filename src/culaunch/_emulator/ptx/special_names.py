"""The special registers that PTX defines (PTX ISA, "Special Registers")."""

from __future__ import annotations

_VECTORS = (
    "tid",
    "ntid",
    "ctaid",
    "nctaid",
    "clusterid",
    "nclusterid",
    "cluster_ctaid",
    "cluster_nctaid",
)
_NAMES = frozenset(
    (
        *_VECTORS,
        *(f"{name}.{axis}" for name in _VECTORS for axis in "xyzw"),
        "laneid",
        "warpid",
        "nwarpid",
        "smid",
        "nsmid",
        "gridid",
        "is_explicit_cluster",
        "cluster_ctarank",
        "cluster_nctarank",
        *(f"lanemask_{which}" for which in ("eq", "le", "lt", "ge", "gt")),
        "clock",
        "clock_hi",
        "clock64",
        *(f"pm{i}{suffix}" for i in range(8) for suffix in ("", "_64")),
        *(f"envreg{i}" for i in range(32)),
        "globaltimer",
        "globaltimer_lo",
        "globaltimer_hi",
        *(f"reserved_smem_offset_{which}" for which in ("begin", "end", "cap", "0", "1")),
        "total_smem_size",
        "aggr_smem_size",
        "dynamic_smem_size",
        "current_graph_exec",
    )
)


def is_special(name: str) -> bool:
    """Return whether PTX has a special register `name`, such as ``"tid.x"``."""
    return name in _NAMES
