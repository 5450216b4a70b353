"""Choose configurations by measuring, and look up the choices."""

from culaunch._tune import Trial, TunedConfigs, Tuning, tune

__all__ = [
    "Trial",
    "TunedConfigs",
    "Tuning",
    "tune",
]
