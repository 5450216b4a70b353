"""The stand-in images and the compiler of the tests of embedding."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "embed"))  # for object_fixtures

import pytest
from object_fixtures import compile_object, cxx, stand_in_cubin  # noqa: F401
from runs import folder_of_the_run


@pytest.fixture(scope="session")
def libraries(tmp_path_factory) -> Path:
    """A build directory of the whole run: the object that libraries share is built once in it."""
    return folder_of_the_run(tmp_path_factory) / "libraries"
