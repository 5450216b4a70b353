"""Work on a user's executor: of processes, of a cluster, of a batch system."""

from culaunch._farm.progress import Progress
from culaunch._farm.ray_executor import RayExecutor
from culaunch._farm.run import checked_executor, run_all
from culaunch._farm.task import Shared, Task

__all__ = ["Progress", "RayExecutor", "Shared", "Task", "checked_executor", "run_all"]
