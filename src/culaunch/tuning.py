"""Choose configurations by measuring, and look up what was chosen."""

from culaunch._tune import Trial, TunedConfigs, Tuning, tune

__all__ = [
    "Trial",
    "TunedConfigs",
    "Tuning",
    "tune",
]
