"""The formats of texels, by ``CUarray_format``, and the words that reads return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from culaunch._emulator.types import Lanes


class Format(NamedTuple):
    """A format of the channels of a texel.

    Attributes
    ----------
    dtype : numpy.dtype
        Of one channel.
    scale : int
        The integer that a normalized read returns as 1.0; 0 if the format has no such reads.
    """

    dtype: np.dtype[Any]
    scale: int = 0

    @property
    def is_float(self) -> bool:
        """Whether every read returns floats."""
        return self.dtype.kind == "f"

    def words(self, texels: Lanes, *, as_integer: bool, srgb: bool = False) -> Lanes:
        """Return four words of 32 bits for each texel: floats, or integers with their sign.

        Missing channels are 0, as on an H200. With `srgb`, bytes of the first three channels are
        converted to linear light.
        """
        count, channels = texels.shape
        if self.is_float or not as_integer:
            words = np.zeros((count, 4), np.float32)
            # A float keeps its bits, also of a NaN.
            words[:, :channels] = texels if self.is_float else self._normalized(texels)
            if srgb and self.scale == 255:
                words[:, : min(channels, 3)] = _linear(words[:, : min(channels, 3)])
            return words.view(np.uint32)
        integers = np.zeros((count, 4), np.int64)
        integers[:, :channels] = texels
        return integers.astype(np.uint32)

    def _normalized(self, texels: Lanes) -> Lanes:
        # The smallest integer and the next one are both -1.
        values: Lanes = texels.astype(np.float32) / np.float32(self.scale)
        values[values < -1] = -1
        return values


def _linear(values: Lanes) -> Lanes:
    """Convert sRGB to linear light (IEC 61966-2-1)."""
    curve = ((values.astype(np.float64) + 0.055) / 1.055) ** 2.4
    linear: Lanes = np.where(values <= 0.04045, values / 12.92, curve).astype(np.float32)
    return linear


FORMATS = {
    0x01: Format(np.dtype("u1"), 255),
    0x02: Format(np.dtype("u2"), 65535),
    0x03: Format(np.dtype("u4")),
    0x08: Format(np.dtype("i1"), 127),
    0x09: Format(np.dtype("i2"), 32767),
    0x0A: Format(np.dtype("i4")),
    0x10: Format(np.dtype("f2")),
    0x20: Format(np.dtype("f4")),
}
