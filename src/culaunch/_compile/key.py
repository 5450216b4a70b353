"""The cache key: everything that the image depends on, and nothing else.

``include/culaunch/jit/store/key.h`` has its parts, and their version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._core import cache_key as key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._compile.backend import Job


def cache_key(
    job: Job, *, source_digest: str, archs: Sequence[str], backend: str, identity: str
) -> str:
    """Return the key of one compile, 64 hexadecimal digits.

    Parameters
    ----------
    job : Job
        The job.
    source_digest : str
        Of the source as the caller gave it.
    archs : sequence of str
        The architectures with their suffixes, in the fixed order.
    backend : str
        Its name.
    identity : str
        What pins the build of the compiler.
    """
    return key_of(
        (backend, identity, source_digest, job.name, job.includes_digest),
        archs,
        job.flags,
        job.names,
        job.lto,
        # Directories are not part of it unless the image records the paths of its files.
        [job.directory, *job.include_dirs] if job.paths else None,
    )
