"""Loading images into the driver, with a record of the loads."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from culaunch._base.html import html_table
from culaunch._base.values import counted
from culaunch._core import Module as CoreModule
from culaunch._errors import DriverError, ImageError
from culaunch._image.mapped import MappedImage, buffer_of
from culaunch._launch.modules.no_code import explained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._core import Driver
    from culaunch._image import Image

# A program that loads more images keeps only the most recent records.
_MOST_KEPT = 10_000

_loaded: deque[LoadedImage] = deque(maxlen=_MOST_KEPT)
_started = time.time()
_preloading = threading.local()


@dataclass(frozen=True)
class LoadedImage:
    """An image that was loaded into the driver.

    Examples
    --------
    >>> cl.profile.load_report().images[-1].size > 0
    True
    """

    source: str
    """The file, and the member of a library in it."""
    format: str
    size: int
    """Bytes."""
    at: float
    """When, in seconds since the epoch."""
    seconds: float
    """The duration of the load, with the compilation of PTX."""
    is_mapped: bool
    """Whether the driver read it from a file that processes share."""
    is_preloaded: bool
    """Whether :func:`culaunch.ship.preload` asked for it, and no call had to wait."""


@dataclass(frozen=True)
class LoadReport:
    """The images that this process loaded into the driver, in order; ``print`` shows a table.

    Examples
    --------
    >>> report = cl.profile.load_report()
    >>> report.size > 0, len(report.images) > 0
    (True, True)
    """

    images: tuple[LoadedImage, ...]

    @property
    def size(self) -> int:
        """The bytes of all images."""
        return sum(one.size for one in self.images)

    @property
    def seconds(self) -> float:
        """Return the total time."""
        return sum(one.seconds for one in self.images)

    def to_dict(self) -> dict[str, Any]:
        """Return the report in a form that JSON can hold.

        Returns
        -------
        dict
            A list with one dict for each image, under ``"images"``.
        """
        return {"images": [asdict(one) for one in self.images]}

    def __len__(self) -> int:
        return len(self.images)

    def __iter__(self) -> Iterator[LoadedImage]:
        return iter(self.images)

    def __str__(self) -> str:
        lines = [self._total()]
        lines += [
            f"{one.at - _started:9.3f} s  {one.seconds * 1e3:8.2f} ms  {one.size:9,}  "
            f"{one.format:6}  {_how_loaded(one):17}  {one.source}"
            for one in self.images
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (f"{one.at - _started:.3f} s", f"{one.seconds * 1e3:.2f} ms", one.size, one.format,
             _how_loaded(one), one.source)
            for one in self.images
        ]  # fmt: skip
        titles = ("at", "took", "bytes", "format", "loaded", "source")
        return html_table(titles, rows, self._total())

    def _total(self) -> str:
        return f"{counted(len(self), 'image')}, {self.size:,} bytes, {self.seconds * 1e3:.1f} ms"


def _how_loaded(one: LoadedImage) -> str:
    return ("preloaded" if one.is_preloaded else "on use") + ", mapped" * one.is_mapped


def load_report() -> LoadReport:
    """Return the images that this process has loaded into the driver, with times and durations.

    Times in its text count from when culaunch first loaded something of the driver's.

    Returns
    -------
    LoadReport
        One record for each image, in the order of the loads.

    Examples
    --------
    >>> report = cl.profile.load_report()
    >>> report.images[-1].format
    'ptx'
    """
    return LoadReport(tuple(_loaded))


def load_image(driver: Driver, image: Image) -> CoreModule:
    """Load an image.

    Raises
    ------
    ImageError
        If it is truncated, malformed or relocatable.
    DriverError
        If the driver refuses it.
    """
    buffer = buffer_of(image)
    # The first clock is a date, and may be set while the image loads. The second measures the
    # duration.
    at, start = time.time(), time.perf_counter()
    try:
        module = CoreModule(driver, buffer)
    except ImageError as error:
        if image.path is None:
            raise
        raise ImageError(str(error), source=image.path) from None
    except DriverError as error:
        raise explained(error, image, driver) from None
    # Recorded only for this thread: the calls of other threads load their images on first use.
    preloaded = getattr(_preloading, "found", None)
    one = LoadedImage(
        image.path or f"<{counted(len(buffer), 'byte')}>",
        image.format,
        len(buffer),
        at,
        time.perf_counter() - start,
        isinstance(image, MappedImage),
        preloaded is not None,
    )
    _loaded.append(one)
    if preloaded is not None:
        preloaded.append(one)
    return module


@contextlib.contextmanager
def preloading() -> Iterator[list[LoadedImage]]:
    """Mark this thread's loads in the block as made before their use; yield their list."""
    found: list[LoadedImage] = []
    _preloading.found = found
    try:
        yield found
    finally:
        _preloading.found = None
