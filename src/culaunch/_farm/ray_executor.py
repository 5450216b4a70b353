"""Ray as an executor: what Ray itself has no class for."""

from __future__ import annotations

import concurrent.futures
from typing import TYPE_CHECKING, Any

from culaunch._base.optional import optional
from culaunch._base.values import spell

if TYPE_CHECKING:
    from collections.abc import Callable


class RayExecutor(concurrent.futures.Executor):
    """An executor whose tasks Ray runs.

    Ray is the caller's: Call ``ray.init()`` before the first task to select the cluster.

    Parameters
    ----------
    **options
        Of ``ray.remote``: ``num_cpus=1``, ``resources={...}``, ``runtime_env={...}``, ...

    Raises
    ------
    MissingDependencyError
        If Ray is not installed.
    TypeError, ValueError
        Ray's own error for an unknown option.

    Examples
    --------
    >>> with cl.compiling.RayExecutor(num_cpus=1) as executor:  # doctest: +SKIP
    ...     images = cl.compiling.compile_many(sources, executor=executor)
    """

    def __init__(self, **options: Any) -> None:
        self._ray = optional("ray", "RayExecutor", "ray")
        self._remote = _remote(self._ray, options)
        self._is_open = True

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> concurrent.futures.Future[Any]:
        """Run ``fn(*args, **kwargs)`` on Ray.

        Parameters
        ----------
        fn : callable
            The function.
        *args, **kwargs
            Its arguments.

        Returns
        -------
        Future
            The future of its result.

        Raises
        ------
        TypeError
            If `fn` is not callable.
        RuntimeError
            If the executor was shut down.
        """
        if not callable(fn):
            raise TypeError(f"fn must be callable (got {spell(fn)})")
        if not self._is_open:
            raise RuntimeError("cannot submit to a RayExecutor that was shut down")
        reference = self._remote.remote(fn, args, kwargs)
        future: concurrent.futures.Future[Any] = _RayFuture(self._ray, reference)
        # Ray's own futures cannot be waited for together with those of other executors.
        reference.future().add_done_callback(lambda done: _hand_on(done, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """Accept no more tasks. Accepted tasks continue, and Ray stays up.

        Parameters
        ----------
        wait : bool, optional
            Whether to wait for the accepted tasks.
        cancel_futures : bool, optional
            Whether to cancel the tasks that have not started.
        """
        self._is_open = False


class _RayFuture(concurrent.futures.Future[Any]):
    """A future that tells Ray when it is canceled."""

    def __init__(self, ray: Any, reference: Any) -> None:
        super().__init__()
        self._ray = ray
        self._reference = reference

    def cancel(self) -> bool:
        cancelled = super().cancel()
        if cancelled:
            # Not by force: a task that runs gets an interrupt, as at a terminal, and cleans up.
            self._ray.cancel(self._reference, force=False)
        return cancelled


def _hand_on(done: concurrent.futures.Future[Any], future: concurrent.futures.Future[Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    error = done.exception()
    if error is None:
        future.set_result(done.result())
    else:
        future.set_exception(error)


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)


def _remote(ray: Any, options: dict[str, Any]) -> Any:
    # Ray accepts the parentheses only with something in them.
    return ray.remote(**options)(_call) if options else ray.remote(_call)
