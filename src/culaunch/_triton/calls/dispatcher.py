"""The Python part of every native dispatcher of Triton kernels."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from culaunch._core import TritonDispatcher
from culaunch._launch.devices.driver import current_driver
from culaunch._launch.formats.dlpack import DeviceType
from culaunch._triton.calls.choice import Choice
from culaunch._triton.calls.set_to_zero import set_to_zero

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from culaunch._launch.launches.recording import RecordingBody
    from culaunch._triton.calls.parameters import TritonParameter


class Dispatcher(TritonDispatcher):
    """A Triton kernel whose calls are native: ``dispatcher[grid](*args, **kwargs)``.

    Parameters
    ----------
    name : str
        The kernel's name, for messages.
    parameters : sequence of TritonParameter
    tuning_key : sequence of (int, KeyKind, int), optional
        The parameters that a choice of the decorators depends on, how, and which dimension of a
        shape.
    """

    def __new__(
        cls,
        name: str,
        parameters: Sequence[TritonParameter],
        tuning_key: Sequence[tuple[int, ...]] | None = None,
    ) -> Self:
        """Make one."""
        self = super().__new__(cls, tuple(one.packed for one in parameters), tuning_key)
        annotations = {one.name: one.annotation for one in parameters if one.annotation}
        vars(self).update(name=name, annotations=annotations, own_parameters=tuple(parameters))
        return self

    name: str
    annotations: dict[str, str]
    own_parameters: tuple[TritonParameter, ...]
    # Whether Triton compiles a missing variant.
    compiles = False

    # ---- called by the native half

    def _prepare(self) -> None:
        """Choose the driver at the first call: making a dispatcher does not need one."""
        driver = current_driver()
        # Do not import torch here: if it is not loaded, no argument is a tensor.
        torch = sys.modules.get("torch") if DeviceType.CUDA in driver.device_types else None
        self._set_driver(driver, getattr(torch, "Tensor", None))

    def _guarded(self, grid: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        return self._call_plain(grid, args, kwargs)

    def _fall_back(
        self,
        grid: object,  # noqa: ARG002
        args: tuple[Any, ...],  # noqa: ARG002
        kwargs: dict[str, Any],  # noqa: ARG002
        reason: Exception,
    ) -> object:
        raise reason  # only installed kernels call this

    def _run_hook(
        self,
        config: Any,
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        settings: dict[str, Any],
    ) -> None:
        """Call a configuration's hook, if `_tune` has reported one."""

    def _set_to_zero(self, values: dict[str, Any]) -> None:
        """Set arguments to zero that the driver cannot fill as a whole."""
        for one in self.own_parameters:
            if one.is_set_to_zero:
                set_to_zero(self.name, one.name, values)

    def _chose(self, config: Any) -> None:
        """Record the parts of a call that differ from the previous call."""

    # ---- in the body of a function

    def _for_body(self, body: RecordingBody) -> Dispatcher:  # noqa: ARG002
        """Return a prepared dispatcher for a body, because the kernel may have changed."""
        if self._driver is None:
            self._prepare()
        return self

    def _note_reads(self, body: RecordingBody) -> None:
        """Make the program depend on the variant's sources."""

    def _choose_in_body(
        self,
        body: RecordingBody,  # noqa: ARG002
        bound: dict[str, Any],  # noqa: ARG002
        options: dict[str, Any],  # noqa: ARG002
    ) -> Choice:
        """Return the decorators' settings for a call in a body; guard the values that they read."""
        return Choice()

    def _read_grid(
        self,
        grid: Any,  # noqa: ARG002
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[object, ...], bool] | None:
        """Return the values that a grid function depends on; None if it must be called."""
        return None

    def _compare(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], chosen: dict[str, Any]
    ) -> None:
        """Compare the choice with Python's, if the check is enabled."""

    def _allocate(
        self,
        which: str,  # noqa: ARG002
        size: int,
        alignment: int,  # noqa: ARG002
        stream: int,  # noqa: ARG002
        device: int,
    ) -> object:
        """Return scratch memory for one launch; None lets the driver allocate it."""
        torch = sys.modules.get("torch")
        if torch is None or self._driver is None or self._driver.name != "cuda":
            return None
        # Allocate on the current stream, which the launch uses: the allocator may reuse the block
        # for later work in that stream.
        return torch.empty(size, dtype=torch.uint8, device=f"cuda:{device}")
