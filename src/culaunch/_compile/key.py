"""The cache key: everything that the image depends on, and nothing else."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._compile.backend import Job

# Changes whenever the same key would stand for another image, or the other way round.
SCHEMA_VERSION = 1


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
    parts = [
        SCHEMA_VERSION,
        backend,
        identity,
        archs,
        source_digest,
        # The name is in __FILE__, and in messages, which the entry keeps.
        job.name,
        job.includes_digest,
        job.flags,
        sorted(job.names),
        job.lto,
        # Directories have no part in it unless the image says where its files are.
        [job.directory, *job.include_dirs] if job.paths else None,
    ]
    return hashlib.sha256(json.dumps(parts).encode(errors="surrogatepass")).hexdigest()
