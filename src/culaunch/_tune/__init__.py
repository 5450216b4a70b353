"""Choose a configuration by measuring, and store the choice."""

from culaunch._tune.table import TunedConfigs
from culaunch._tune.tune import tune
from culaunch._tune.tuning import Trial, Tuning

__all__ = ["Trial", "TunedConfigs", "Tuning", "tune"]
