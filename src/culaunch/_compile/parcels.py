"""Requests of ``compile`` as they are sent to workers: small, and the same everywhere."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_list, checked_path
from culaunch._compile.architectures import resolve_arch
from culaunch._compile.compilation import compile as compile_one
from culaunch._compile.headers import Headers, as_headers
from culaunch._compile.source import is_source_text
from culaunch._errors import CulaunchError
from culaunch._farm.task import Shared, Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Never

# In characters. Sending a shorter text costs less than asking for it.
_WORTH_SHARING = 4096


class Parcels:
    """Packs the requests of one call: reads each mapping of headers once."""

    def __init__(self) -> None:
        # By identity, together with the mapping itself: only a living object has a unique identity.
        self._headers: dict[int, tuple[Any, Headers]] = {}
        self._current: tuple[str, ...] | None = None

    def pack(self, label: str, arguments: Mapping[str, Any]) -> Task:
        """Return the task of a request. A wrong request becomes a task that fails."""
        try:
            return self._pack(label, dict(arguments))
        except (CulaunchError, TypeError, ValueError, OSError) as error:
            return Task(_refuse, {"error": error}, label)

    def _pack(self, label: str, arguments: dict[str, Any]) -> Task:
        # Resolve the current device here, because workers may have a different GPU, or none.
        arguments["arch"] = self._arch(arguments.get("arch"))
        shared = {}
        source = arguments["source"]
        if not is_source_text(source):
            # Workers have another current directory.
            arguments["source"] = os.path.abspath(checked_path("source", source))
        elif len(source) >= _WORTH_SHARING:
            # Sent once to each worker under its digest, not with each request that uses it.
            del arguments["source"]
            digest = hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()
            shared["source"] = Shared(digest, source)
        if "include_dirs" in arguments:
            arguments["include_dirs"] = [
                os.path.abspath(checked_path("include_dirs", one))
                for one in checked_list("include_dirs", arguments["include_dirs"], "directories")
            ]
        if arguments.get("headers") is not None:
            headers = self._read(arguments.pop("headers"))
            shared["headers"] = Shared(headers.digest, headers)
        return Task(compile_one, arguments, label, shared)

    def _arch(self, given: Any) -> tuple[str, ...]:
        if given is not None:
            return resolve_arch(given)
        if self._current is None:  # the driver is asked once for all requests
            self._current = resolve_arch(None)
        return self._current

    def _read(self, given: Any) -> Headers:
        known = self._headers.get(id(given))
        if known is None:
            known = self._headers[id(given)] = (given, as_headers(given))
        return known[1]


def _refuse(error: Exception) -> Never:
    """Raise the error of a request when its turn comes."""
    raise error
