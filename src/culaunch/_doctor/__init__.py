"""What this machine has of all that culaunch can use, and what is wrong with it."""

from __future__ import annotations

from culaunch._doctor.diagnosis import Diagnosis, Finding
from culaunch._doctor.examination import doctor

__all__ = ["Diagnosis", "Finding", "doctor"]
