"""Images inside C++ objects: the object writer, and where the C++ parts live."""

from __future__ import annotations

from culaunch._embed.embedding import embed
from culaunch._embed.paths import cmake_dir, include_dir

__all__ = ["cmake_dir", "embed", "include_dir"]
