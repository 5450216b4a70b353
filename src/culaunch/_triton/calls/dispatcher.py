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
    # Whether a variant that is not there yet is compiled, by Triton.
    compiles = False

    # ---- what the native half calls

    def _prepare(self) -> None:
        """Choose the driver at the first call: making a dispatcher does not need one."""
        driver = current_driver()
        # Not imported for this: without it no argument is a tensor of it.
        torch = sys.modules.get("torch") if DeviceType.CUDA in driver.device_types else None
        self._set_driver(driver, getattr(torch, "Tensor", None))

    def _guarded(self, grid: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        return self._call_plain(grid, args, kwargs)

    def _tritons_way(
        self,
        grid: object,  # noqa: ARG002
        args: tuple[Any, ...],  # noqa: ARG002
        kwargs: dict[str, Any],  # noqa: ARG002
        reason: Exception,
    ) -> object:
        raise reason  # only what is installed goes there

    def _run_hook(
        self,
        config: Any,
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        settings: dict[str, Any],
    ) -> None:
        """Call the hook of a configuration, where `_tune` said that there is one."""

    def _set_to_zero(self, values: dict[str, Any]) -> None:
        """Set arguments to zero that the driver cannot fill as a whole."""
        for one in self.own_parameters:
            if one.is_set_to_zero:
                set_to_zero(self.name, one.name, values)

    def _chose(self, config: Any) -> None:
        """Note what a call uses that differs from the call before."""

    # ---- in the body of a function

    def _for_body(self, body: RecordingBody) -> Dispatcher:  # noqa: ARG002
        """Return the dispatcher that a body records, prepared: the kernel may have changed."""
        if self._driver is None:
            self._prepare()
        return self

    def _note_reads(self, body: RecordingBody) -> None:
        """Let the program depend on what the variant was compiled from."""

    def _choose_in_body(
        self,
        body: RecordingBody,  # noqa: ARG002
        bound: dict[str, Any],  # noqa: ARG002
        options: dict[str, Any],  # noqa: ARG002
    ) -> Choice:
        """Return what decorators set for a call in a body; what they look at is guarded."""
        return Choice()

    def _read_grid(
        self,
        grid: Any,  # noqa: ARG002
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[object, ...], bool] | None:
        """Return what a grid that is a function depends on; None: it is called."""
        return None

    def _compare(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], chosen: dict[str, Any]
    ) -> None:
        """Compare what was chosen with what Python says, where that is asked for."""

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
        # On the current stream, which the launch uses: the allocator may reuse the block for what
        # comes after in that stream.
        return torch.empty(size, dtype=torch.uint8, device=f"cuda:{device}")
