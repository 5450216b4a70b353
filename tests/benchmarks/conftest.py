"""The benchmarks are scripts beside the package: found by path, built in a cache of the tests."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from runs import folder_of_the_run

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="session")
def benchmarks() -> Path:
    return BENCHMARKS


@pytest.fixture(scope="session")
def build_cache(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    path = folder_of_the_run(tmp_path_factory) / "benchmark-cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(path))
        yield path


@pytest.fixture(scope="session")
def overhead(build_cache: Path) -> Generator[Callable[[str], Any]]:
    """Import a module of benchmarks/overhead."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield lambda name: importlib.import_module(f"overhead.{name}")
