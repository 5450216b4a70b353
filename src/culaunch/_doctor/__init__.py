"""Reports the software on this machine that culaunch can use, and its problems."""

from __future__ import annotations

from culaunch._doctor.diagnosis import Component, Diagnosis
from culaunch._doctor.examination import doctor

__all__ = ["Component", "Diagnosis", "doctor"]
