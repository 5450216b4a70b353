"""The stand-in images and the compiler of the tests of embedding."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "embed"))  # for object_fixtures

from object_fixtures import compile_object, cxx, stand_in_cubin  # noqa: F401
