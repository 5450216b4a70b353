"""File systems of fsspec that misbehave, by the part of the URL after the scheme.

``bad://slow``, ``bad://lying``, ``bad://dead``, ``bad://midway`` and ``bad://good``; what they were
asked is in CALLS.
"""

import time
from typing import ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

CALLS = []
GATE = {"sleep": 30.0}


class Bad(MemoryFileSystem):
    protocol = "bad"
    store: ClassVar[dict] = {}
    pseudo_dirs: ClassVar[list] = [""]

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("bad://"))

    def _meet(self, what, path):
        kind = path.strip("/").partition("/")[0]
        CALLS.append((what, kind))
        if kind == "slow":
            time.sleep(GATE["sleep"])
        if kind == "dead" or (kind == "midway" and len(CALLS) > 3):
            raise ConnectionResetError("the connection was reset")
        if kind == "readonly" and what == "write":
            raise PermissionError("403 Forbidden")
        return kind

    def cat_file(self, path, start=None, end=None, **kwargs):
        kind = self._meet("read", self._strip_protocol(path))
        data = super().cat_file(path, start, end)
        return data[: len(data) // 2] if kind == "lying" else data

    def pipe_file(self, path, value, **kwargs):
        self._meet("write", self._strip_protocol(path))
        super().pipe_file(path, value)

    def find(self, path, **kwargs):
        self._meet("list", self._strip_protocol(path))
        return super().find(path, **kwargs)


def register():
    fsspec.register_implementation("bad", Bad, clobber=True)


def clear():
    CALLS.clear()
    Bad.store.clear()
    Bad.pseudo_dirs[:] = [""]
