"""Parts of the tests of the compiled engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Start without compiled code, which the cache of an earlier run may have."""
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(tmp_path / "cache"))
