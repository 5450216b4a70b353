"""Make the corpus importable; watch what operations do to registers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from driver_table import Table
from watch_registers import watched

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", autouse=True)
def watch_registers() -> Iterator[None]:
    """In every test here, what an operation does to registers is what liveness says of it."""
    with watched():
        yield


@pytest.fixture
def table() -> Table:
    """Return a table of the emulated driver, as C code has it."""
    return Table()


@pytest.fixture
def library(table: Table) -> int:
    """Return a library that is loaded in the table."""
    return table.load()
