"""The actions of a kernel: its launches, and the resources it uses on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from culaunch._base.cuda import FunctionAttribute
from culaunch._core import Kernel as CoreKernel
from culaunch._launch.devices.driver import device_ordinal
from culaunch._launch.launches.kernel_use import KernelAttributes, Occupancy
from culaunch._launch.launches.launch_options import are_options, refuse_options, takes_options
from culaunch._launch.launches.other_launches import instead_of_a_call, not_subscripted
from culaunch._launch.private_members import core_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import SupportsIndex

    from typing_extensions import Unpack

    from culaunch._core import Launcher, LaunchOptions

    # A size in threads or blocks: x, or up to (x, y, z).
    Dims = SupportsIndex | Sequence[SupportsIndex]


class KernelLaunches(CoreKernel):
    """The launches of a kernel; :class:`~culaunch.Kernel` adds its module and its signature.

    That class is defined with Module: modules make kernels, and each kernel knows its module.
    """

    # Modules declare it as a Module. Queries about devices go to its driver.
    module: Any

    def __call__(self, *args: Any, **_: Any) -> NoReturn:
        """Refuse: a launch needs its grid and its block.

        Raises
        ------
        TypeError
            Always.
        """
        spelling = instead_of_a_call(self.name, args)
        raise TypeError(
            f"{self.name} needs a grid and a block: launch it with {spelling}, or with "
            "kernel.launch(..., grid=, block=)"
        )

    @property
    def demangled(self) -> str:
        """Its C++ name, with the types of its parameters if they are known."""
        from culaunch._image import demangle

        return demangle(self.name)

    @takes_options
    def launch(self, *args: Any, **options: Unpack[LaunchOptions]) -> None:
        """Launch the kernel once. To launch it often, keep a launcher from :meth:`configure`.

        Parameters
        ----------
        *args
            The arguments of the kernel.
        **options
            The launch configuration, with the keywords of :meth:`configure`.

        Raises
        ------
        TypeError, ValueError, OverflowError
            If an argument is not what its parameter takes, or the arrays are on several devices.
        LaunchError
            If the launch configuration is not possible for this kernel on that device.
        DriverError
            If the driver fails, as after a fault of an earlier kernel.
        """
        try:
            launcher = super().configure(**options)
        except TypeError:
            if are_options(options):
                raise
        else:
            launcher(*args)
            return
        refuse_options("launch", options)

    @takes_options
    def configure(self, **options: Unpack[LaunchOptions]) -> Launcher:
        """Fix the launch configuration.

        Parameters
        ----------
        **options
            The options of a launch.

        Returns
        -------
        Launcher
            Call it with the kernel's arguments. It keeps the kernel and its module alive. Many
            threads may call it.

        Raises
        ------
        TypeError, ValueError
            If a value has the wrong type, a dimension is 0, or the grid is not a multiple of the
            cluster.
        """
        try:
            return super().configure(**options)
        except TypeError:
            if are_options(options):
                raise
        return refuse_options("configure", options)

    @not_subscripted
    def attributes(self, device: int | None = None) -> KernelAttributes:
        """Return the resources and limits of the kernel on a device.

        Parameters
        ----------
        device : int, optional
            The device's ordinal; the current one by default.

        Raises
        ------
        DriverError
            If the image has no code for that device, among others.
        """
        ordinal = self._ordinal(device)

        def get(name: str) -> int:
            return self._attribute(FunctionAttribute[name.upper()], ordinal)

        return KernelAttributes(
            max_threads_per_block=get("max_threads_per_block"),
            registers=get("num_regs"),
            static_shared=get("shared_size_bytes"),
            const_bytes=get("const_size_bytes"),
            local_bytes=get("local_size_bytes"),
            max_dynamic_shared=self._max_dynamic_shared_memory(ordinal),
            ptx_version=get("ptx_version"),
            binary_version=get("binary_version"),
        )

    def occupancy(
        self,
        block: Dims,
        shared_memory: int = 0,
        *,
        cluster: Dims | None = None,
        device: int | None = None,
    ) -> Occupancy:
        """Return how many blocks of this size fit a device.

        Parameters
        ----------
        block : int or tuple of up to 3 ints
            Threads of a block.
        shared_memory : int, optional
            Dynamic shared memory of a block in bytes.
        cluster : int or tuple of up to 3 ints, optional
            Blocks of a cluster, to learn how many clusters fit.
        device : int, optional
            The device's ordinal; the current one by default.

        Returns
        -------
        Occupancy
            The number of blocks for each multiprocessor, and with `cluster` the number of clusters.
        """
        return Occupancy(*self._occupancy(self._ordinal(device), block, shared_memory, cluster))

    def _ordinal(self, device: int | None) -> int:
        return device_ordinal(core_of(self.module).driver, device)
