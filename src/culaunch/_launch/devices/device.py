"""Devices: their number, their properties, and the current one."""

from __future__ import annotations

from culaunch._base.checks import checked_text
from culaunch._base.cuda import DeviceAttribute
from culaunch._base.similar import did_you_mean
from culaunch._base.values import spell
from culaunch._launch.devices.driver import current_driver, device_ordinal

_ATTRIBUTES = {attribute.name.lower(): attribute for attribute in DeviceAttribute}


class Device:
    """A device of the driver in use.

    As a context manager it makes the device current on this thread and restores the one before.

    Parameters
    ----------
    ordinal : int, optional
        Which one, from 0; the current one by default.

    Raises
    ------
    ValueError, TypeError, OverflowError
        If the device does not exist, or the number is invalid.

    Examples
    --------
    >>> device = cl.driver.Device(0)
    >>> device.arch, device.attribute("warp_size")
    ('sm_...', 32)
    """

    def __init__(self, ordinal: int | None = None) -> None:
        self._driver = current_driver()
        self.ordinal = device_ordinal(self._driver, ordinal)
        # Ask now, to refuse a device that does not exist.
        self._driver.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT, self.ordinal)

    @property
    def name(self) -> str:
        """Its name, such as ``"NVIDIA H100 80GB HBM3"``."""
        return self._driver.device_name(self.ordinal)

    @property
    def arch(self) -> str:
        """Its architecture, such as ``"sm_90"``."""
        major = self.attribute("compute_capability_major")
        return f"sm_{major}{self.attribute('compute_capability_minor')}"

    def attribute(self, name: str) -> int:
        """Return an attribute by its name in the driver API, in lower case.

        Parameters
        ----------
        name : str
            Such as ``"multiprocessor_count"`` or ``"max_shared_memory_per_block_optin"``: the name
            after ``CU_DEVICE_ATTRIBUTE_``.

        Returns
        -------
        int
            The value of the attribute.

        Raises
        ------
        ValueError, TypeError
            If culaunch does not know that name; the message lists those that it knows.
        """
        return self._driver.attribute(attribute_number(name), self.ordinal)

    def synchronize(self) -> None:
        """Wait until everything on the device has run; a kernel's fault is raised here."""
        self._driver.synchronize(self.ordinal)

    def __enter__(self) -> Device:
        self._driver.push_device(self.ordinal)
        return self

    def __exit__(self, *exception: object) -> None:
        self._driver.pop_device()

    def __repr__(self) -> str:
        return f"<culaunch.driver.Device {self.ordinal}: {self.name}, {self.arch}>"


def device_count() -> int:
    """Return the number of devices of the driver in use.

    Returns
    -------
    int
        0 if the machine has a driver, but no device.

    Examples
    --------
    >>> cl.driver.device_count() > 0
    True
    """
    return current_driver().device_count


def devices() -> tuple[Device, ...]:
    """Return every device of the driver in use.

    Returns
    -------
    tuple of Device
        The devices, by their ordinals.

    Examples
    --------
    >>> [device.name for device in cl.driver.devices()]
    [...]
    """
    return tuple(Device(i) for i in range(device_count()))


def synchronize(device: int | None = None) -> None:
    """Wait until everything on a device (the current one by default) has run.

    Parameters
    ----------
    device : int, optional
        The device's ordinal; the current one by default.

    Raises
    ------
    DriverError
        If a kernel failed: its fault is reported by the first call that waits for it.

    Examples
    --------
    >>> kernel[1, 256](y, x, 2.0, 256)
    >>> cl.synchronize()
    """
    Device(device).synchronize()


def attribute_number(name: str) -> DeviceAttribute:
    """Return an attribute of a device by its name in the driver API, in lower case.

    Raises
    ------
    ValueError, TypeError
        If culaunch does not know that name; the message lists those that it knows.
    """
    number = _ATTRIBUTES.get(checked_text("name", name))
    if number is None:
        known = f"the names are {', '.join(sorted(_ATTRIBUTES))}"
        meant = did_you_mean(name, _ATTRIBUTES)
        raise ValueError(f"there is no device attribute {spell(name)}{meant or ';'} {known}")
    return number
