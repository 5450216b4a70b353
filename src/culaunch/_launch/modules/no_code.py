"""Why an image has no code for a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.cuda import Result
from culaunch._errors import DriverError, ImageError
from culaunch._launch.devices.driver import capability_of

if TYPE_CHECKING:
    from culaunch._core import Driver
    from culaunch._image import Image

_CODES = (
    Result.INVALID_IMAGE,
    Result.NO_BINARY_FOR_GPU,
    Result.INVALID_PTX,
    Result.UNSUPPORTED_PTX_VERSION,
)


def explained(error: DriverError, image: Image, driver: Driver) -> DriverError:
    """Add to the error what the image contains and the device needs, if that is the cause."""
    # Other errors do not come from the architecture.
    if error.code not in _CODES or driver.device_count == 0 or driver.name == "emulator":
        return error  # the emulator reports it itself
    device = driver.current_device()
    major, minor = capability_of(driver, device)
    try:
        present = ", ".join(image.arch) or "nothing"
    except ImageError:
        present = "an unknown architecture"
    return DriverError(
        f"{error}. {image.path or 'The image'} has code for {present}. Device {device} is "
        f"sm_{major}{minor}: it runs cubins for sm_{major}0 to sm_{major}{minor} (one with the "
        f"suffix a for sm_{major}{minor}a only). It also runs PTX for compute_{major}{minor} or "
        "older, if its driver's compiler knows the PTX version. Compile for it, for example with "
        f"arch='sm_{major}{minor}'",
        error.code,
        error.name,
    )
