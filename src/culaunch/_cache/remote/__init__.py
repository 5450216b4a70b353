"""A cache behind the local one, on a server that many machines reach."""

from culaunch._cache.remote.remote_cache import RemoteCache

__all__ = ["RemoteCache"]
