"""Images inside C++ objects: the object writer, inline C++ and where the C++ parts live."""

from __future__ import annotations

from culaunch._embed.embedding import embed
from culaunch._embed.inline import load_inline
from culaunch._embed.paths import cmake_dir, include_dir

__all__ = ["cmake_dir", "embed", "include_dir", "load_inline"]
