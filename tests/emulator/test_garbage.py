"""Arrays that the garbage collector frees during a call of the driver."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
from emulator_internals import Device

if TYPE_CHECKING:
    from collections.abc import Iterator


class InCycle:
    """An owner of an allocation that only the garbage collector drops."""

    def __init__(self, device: Device) -> None:
        self.device, self.address = device, device.alloc(64)
        self.itself = self

    def __del__(self) -> None:
        self.device.free(self.address)


@pytest.fixture
def eager_collector() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)


def test_allocations_may_be_freed_while_they_are_listed(eager_collector: None) -> None:
    device = Device()
    kept = {device.alloc(64) for _ in range(100)}
    gc.collect()
    gc.set_threshold(0)
    for _ in range(100):
        InCycle(device)
    gc.set_threshold(gc.get_count()[0] + 50)  # in the middle of the list
    listed = {address for address, _ in device.ranges}
    gc.collect()
    assert kept <= listed
    assert {address for address, _ in device.ranges} == kept
