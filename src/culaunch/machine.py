"""Report the drivers, compilers and frameworks of this machine."""

from culaunch._doctor import Component, Diagnosis, doctor

__all__ = [
    "Component",
    "Diagnosis",
    "doctor",
]
