"""The processors that object files are written for."""

from __future__ import annotations

import platform
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """The differences between the object files of two processors."""

    name: str
    e_machine: int
    property_type: int
    """The GNU property in which an object states which branch protections it is fit for."""


# If an object lacks the property, the linker drops the protection (IBT and shadow stack, BTI and
# PAC) from the whole library. Data is compatible with all of them: both have the value 3.
ALL_PROTECTIONS = 3

MACHINES = (
    Machine("x86_64", 62, 0xC0000002),
    Machine("aarch64", 183, 0xC0000000),
)

_ALIASES = {"amd64": "x86_64", "x86-64": "x86_64", "arm64": "aarch64"}


def find_machine(name: str | None) -> Machine:
    """Return the machine of that name, or the one this runs on."""
    wanted = platform.machine() if name is None else name
    key = _ALIASES.get(wanted.lower(), wanted.lower())
    for machine in MACHINES:
        if machine.name == key:
            return machine
    known = ", ".join(repr(machine.name) for machine in MACHINES)
    raise ValueError(f"machine must be one of {known} (got {wanted!r})")
