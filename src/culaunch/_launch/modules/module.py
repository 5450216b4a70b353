"""An image loaded into the driver, for all devices at once, and its kernels."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from culaunch._base.bundling import keep_to_bundle
from culaunch._base.checks import checked_text, is_text
from culaunch._base.other_words import suggestion, with_other_words
from culaunch._base.values import as_html, spell
from culaunch._core import Launcher
from culaunch._core import Module as CoreModule
from culaunch._errors import DriverError, KernelNotFoundError
from culaunch._image import Image, demangle
from culaunch._launch.devices.driver import current_driver, device_ordinal
from culaunch._launch.launches.compiled_regions import in_regions
from culaunch._launch.launches.kernel_launches import KernelLaunches
from culaunch._launch.modules.loading import load_image
from culaunch._launch.modules.names import find_kernel, find_variable, without_parameters
from culaunch._launch.modules.no_code import explained
from culaunch._launch.modules.variable import GlobalVariable
from culaunch._launch.signatures.signature import (
    Signature,
    kind_of,
    make_signature,
    parse_signature,
)
from culaunch._launch.signatures.type_sources import is_template, recorded_types

if TYPE_CHECKING:
    from collections.abc import Iterator


@with_other_words
class Module:
    """An image in the driver (a ``CUlibrary``): its kernels run on every device it has code for.

    A module is unloaded by :meth:`unload` or at the end of a ``with`` block, never by the garbage
    collector or at exit: its kernels may still run.

    Parameters
    ----------
    image : Image
        The image to load; :func:`load` also accepts paths and bytes.

    Raises
    ------
    TypeError
        If it is not an Image.
    ImageError
        If the image is truncated, malformed or relocatable.
    DriverError
        If the driver refuses it.

    Examples
    --------
    >>> module = cl.load(cl.compile(source, names=["scale<float>"]))
    >>> [kernel.demangled for kernel in module]
    ['add', 'void scale<float>(float*, float const*, float, int)']
    >>> module["add"][1, 256](y, x, x, 256)
    """

    def __init__(self, image: Image) -> None:
        if not isinstance(image, Image):
            raise TypeError(
                f"image must be an Image (got {spell(image)}): for a path or bytes, call "
                "culaunch.load"
            )
        self.image = image
        self._core = load_image(current_driver(), image)
        # By every name used so far: the same kernel may appear several times.
        self._kernels: dict[str, Kernel] = {}

    def __getitem__(self, name: str) -> Kernel:
        """Find a kernel.

        Parameters
        ----------
        name : str
            Its name in the image, a name expression that the image was compiled with, or its
            demangled name, with or without the parameters: ``"scale<float>"``.

        Raises
        ------
        KernelNotFoundError
            If there is no such kernel, or several have that demangled name; the message lists the
            known names.
        ValueError
            If the module was unloaded.
        """
        # A key that is not a str may not be hashable.
        kernel = self._kernels.get(name) if isinstance(name, str) else None
        if kernel is None:
            kernel = self._kernels[name] = self._find(name, None)
        return kernel

    def kernel(self, name: str, *, signature: str | None = None) -> Kernel:
        """Find a kernel, and declare its parameters.

        Parameters
        ----------
        name : str
            As for ``module[name]``.
        signature : str, optional
            C type names, as in ``"float*, const half*, int, float"``. Needed only if neither the
            kernel's name nor the image has the types.

        Returns
        -------
        Kernel
            The kernel with these types.

        Raises
        ------
        KernelNotFoundError
            If the kernel does not exist.
        ValueError
            If the signature's count or a size is not the kernel's.
        """
        return self[name] if signature is None else self._find(name, signature)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Every kernel, in the driver's order."""
        self._require_loaded()
        return tuple(self[name] for name in self._core.kernel_names())

    @property
    def variables(self) -> tuple[GlobalVariable, ...]:
        """Every ``__device__`` and ``__constant__`` variable, on the current device.

        A ``static`` one is among them if the driver finds it by its name.
        """
        self._require_loaded()
        found = []
        for variable in self.image.variables:
            with contextlib.suppress(KernelNotFoundError):
                found.append(self.get_global(variable.name))
        return tuple(found)

    def __contains__(self, name: object) -> bool:
        """Tell whether it has a kernel: of that name, or this one."""
        self._require_loaded()
        if isinstance(name, Kernel):
            return name.module is self
        try:
            return isinstance(name, str) and is_text(name) and self[name] is not None
        except KernelNotFoundError:
            return False

    def __len__(self) -> int:
        """Return the number of kernels."""
        self._require_loaded()
        return len(self._core.kernel_names())

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self.kernels)

    def _ipython_key_completions_(self) -> list[str]:
        """Return completions for ``module["``: names that each identify one kernel."""
        names = [without_parameters(kernel.demangled) for kernel in self.kernels]
        return [
            short if names.count(short) == 1 else kernel.name
            for short, kernel in zip(names, self.kernels, strict=True)
        ]

    def get_global(self, name: str, device: int | None = None) -> GlobalVariable:
        """Find a ``__device__`` or ``__constant__`` variable.

        Parameters
        ----------
        name : str
            Its name in the image, a name expression that the image was compiled with
            (``"&ns::table"``), or the name as the source has it: ``"ns::table"``.
        device : int, optional
            The device's ordinal; the current one by default.

        Returns
        -------
        GlobalVariable
            The variable on this device. It keeps the module alive.

        Raises
        ------
        KernelNotFoundError
            If the module has no variable with this name, or several. The message lists the
            variables.
        ValueError, TypeError, OverflowError
            If the module is unloaded, the device does not exist, or an argument has another type.
        """
        checked_text("name", name, "a str, the name of a variable")
        self._require_loaded()
        ordinal = device_ordinal(self._core.driver, device)
        count = self._core.driver.device_count
        if not 0 <= ordinal < count:  # otherwise the variable would be reported as missing
            raise ValueError(f"there is no device {ordinal}: this machine has {count}")
        try:
            lowered = self.image.names.get(name, name)
            address, size = self._core.get_global(lowered, ordinal)
        except KernelNotFoundError:
            # Parse the image for its variables only for names that are not in the image.
            lowered = find_variable(self.image, name)
            address, size = self._core.get_global(lowered, ordinal)
        return GlobalVariable(address, size, ordinal, lowered, self._core)

    def unload(self) -> None:
        """Unload the image now. A later call of one of its kernels raises.

        Its launches must have ended. The module's variables no longer exist.
        """
        self._core.unload()
        # Make every later lookup fail, whatever the name.
        self._kernels.clear()

    def __enter__(self) -> Module:
        return self

    def __exit__(self, *exception: object) -> None:
        self.unload()

    def __str__(self) -> str:
        """Return the tables that ``culaunch inspect`` prints for its image."""
        from culaunch._image import inspect

        return str(inspect(self.image))

    def _repr_html_(self) -> str:
        return as_html(self)

    def __repr__(self) -> str:
        state = "" if self._core.is_loaded else ", unloaded"
        return f"<culaunch.Module of {self.image!r}{state}>"

    def _find(self, name: str, signature: str | None) -> Kernel:
        checked_text("name", name, "a str, the name of a kernel")
        self._require_loaded()
        try:
            lowered = find_kernel(self._core, self.image, name)
            layout = self._core.layout(lowered)
        except DriverError as error:
            raise explained(error, self.image, self._core.driver) from None
        assert layout is not None
        if signature is not None:
            return Kernel(self, lowered, parse_signature(signature, layout, demangle(lowered)))
        # Keep one kernel object for all of its names.
        kernel = self._kernels.get(lowered)
        if kernel is None:
            kernel = Kernel(self, lowered, self._known_signature(lowered, layout))
            self._kernels[lowered] = kernel
        return kernel

    def _require_loaded(self) -> None:
        if not self._core.is_loaded:
            raise ValueError("the module was unloaded: load it again")

    def _known_signature(self, lowered: str, layout: tuple[tuple[int, int], ...]) -> Signature:
        types, source = recorded_types(self.image, lowered)
        return make_signature(layout, types, source, is_template(lowered))


@with_other_words
class Kernel(KernelLaunches):
    """A ``__global__`` function of a module, found with ``module[name]``.

    ``kernel[grid, block]``, ``kernel[grid, block, shared_memory]`` and ``kernel[grid, block,
    shared_memory, stream]`` return a launcher. The order is the same as in CUDA's chevrons. The
    last few launchers are cached, so ``kernel[grid, block](x, y, n)`` costs little more than a
    launcher that you keep.

    Attributes
    ----------
    name : str
        Its name in the image: mangled, unless it is ``extern "C"``.
    handle : int
        The ``CUkernel``; 0 once the module is unloaded.

    Examples
    --------
    >>> kernel = module["add"]
    >>> kernel[1, 256](y, x, x, 256)
    >>> kernel.launch(y, x, x, 256, grid=1, block=256)
    >>> y.numpy()[:3]
    array([2., 2., 2.], dtype=float32)
    """

    module: Module
    signature: Signature

    def __new__(cls, module: Module, name: str, signature: Signature) -> Kernel:
        """Make one; ``module[name]`` and ``module.kernel(name)`` are the ways to get one."""
        checked_text("name", name)
        if not isinstance(core := getattr(module, "_core", None), CoreModule):
            raise TypeError(f"module must be a Module (got {spell(module)})")
        if not isinstance(signature, Signature):
            raise TypeError(f"signature must be a Signature (got {spell(signature)})")
        # The extension converts by numbers, so Python parses the type names only once.
        types = tuple(kind_of(one).packed for one in signature.parameters)
        self = super().__new__(cls, core, name, types)
        self.module, self.signature = module, signature
        keep_to_bundle(self)
        return self

    if not TYPE_CHECKING:  # type checkers then refuse to set unknown attributes

        def __setattr__(self, name: str, value: object) -> None:
            # CuPy configures kernels through attributes, which would have no effect here.
            if name not in ("module", "signature"):
                hint = suggestion("Kernel", name)
                raise AttributeError(f"a Kernel has no attribute {name!r} to set{hint}")
            super().__setattr__(name, value)

    def _ipython_key_completions_(self) -> list[object]:
        return []  # its keys are launch configurations, which no image lists

    def __str__(self) -> str:
        """Return its parameters, and the resources that it uses, if the image has them."""
        known = next((one for one in self.module.image.kernels if one.name == self.name), None)
        row = "" if known is None else f"\n{known}"
        return f"{self.demangled}\n{self.signature}{row}"

    def _repr_html_(self) -> str:
        return as_html(self)

    def __repr__(self) -> str:
        return f"<culaunch.Kernel {self.demangled} {self.signature}>"


in_regions(Module, "break", "module")
in_regions(Kernel, "break", "kernel")
in_regions(Launcher, "break", "launcher")
