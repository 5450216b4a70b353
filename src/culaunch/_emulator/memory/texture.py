"""A texture: how coordinates become texels, by the CUDA C++ Programming Guide ("Texture Fetching").

Coordinates are exact here. Weights of linear filters have the hardware's 8 fractional bits.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._emulator.memory.images import CudaArray, LinearImage
    from culaunch._emulator.types import Lanes

READ_AS_INTEGER, NORMALIZED, SRGB = 1, 2, 0x10  # CU_TRSF_...
_WRAP, _CLAMP, _MIRROR, BORDER = range(4)  # CUaddress_mode
_FAR = float(1 << 31)
# The texels of a gather, relative to the lowest: counterclockwise from the lower left.
_CORNERS = ((0, 1), (1, 1), (1, 0), (0, 0))


class Sampler(NamedTuple):
    """The members of ``CUDA_TEXTURE_DESC``."""

    addresses: tuple[int, ...]
    filter: int
    flags: int
    max_anisotropy: int
    mipmap_filter: int
    bias: float
    least: float
    most: float
    border: tuple[float, ...]


class Coordinates(NamedTuple):
    """The place that each lane reads.

    Attributes
    ----------
    axes : list of numpy.ndarray
        One to three arrays of doubles, or of integers that name a texel.
    slices : numpy.ndarray or None
        The layer or face of an array that has them.
    offsets : tuple of int
        Texels to add to each axis.
    is_face : bool
        Whether the axes are from 0 to 1 on a face of a cube.
    """

    axes: list[Lanes]
    slices: Lanes | None = None
    offsets: tuple[int, ...] = (0, 0, 0)
    is_face: bool = False

    def of(self, lanes: Lanes) -> Coordinates:
        """Return those of some lanes."""
        slices = None if self.slices is None else self.slices[lanes]
        return self._replace(axes=[axis[lanes] for axis in self.axes], slices=slices)


class Texture:
    """The levels of a mipmap, or one image, with a sampler."""

    noun = "texture"

    def __init__(self, levels: Sequence[CudaArray | LinearImage], sampler: Sampler) -> None:
        self.levels = levels
        self.sampler = sampler
        item = levels[0].shape.item
        self.as_integer = not item.is_float and (
            bool(sampler.flags & READ_AS_INTEGER) or not item.scale
        )
        self.border = np.zeros(4, np.float32)
        self.border[:] = sampler.border
        self.border_words = self.border.view(np.uint32)
        if self.as_integer:
            self.border_words = self.border.astype(np.int64).astype(np.uint32)

    @property
    def image(self) -> CudaArray | LinearImage:
        """The largest image."""
        return self.levels[0]

    def fetch(self, group: Any, at: Coordinates, detail: Lanes | None) -> Lanes:
        """Return four words for each lane; `detail` is the level of detail, by default 0."""
        if len(self.levels) == 1:
            return self._sample(group, self.levels[0], at)
        sampler, count = self.sampler, at.axes[0].shape[0]
        bias = 0.0 if detail is None else sampler.bias
        level = np.zeros(count) if detail is None else np.nan_to_num(detail) + bias
        level = np.clip(np.clip(level, sampler.least, sampler.most), 0, len(self.levels) - 1)
        if not sampler.mipmap_filter or self.as_integer:
            return self._sample_levels(group, at, np.floor(level + 0.5))
        low, part = _split(level)
        near = self._sample_levels(group, at, low).view(np.float32)
        far = self._sample_levels(group, at, low + 1).view(np.float32)
        blend: Lanes = _weighted(near, 1 - part) + _weighted(far, part)
        return blend.astype(np.float32).view(np.uint32)

    def _sample_levels(self, group: Any, at: Coordinates, levels: Lanes) -> Lanes:
        words = np.zeros((levels.shape[0], 4), np.uint32)
        numbers = np.minimum(levels, len(self.levels) - 1).astype(np.int64)
        for number in np.unique(numbers):
            lanes = np.flatnonzero(numbers == number)
            words[lanes] = self._sample(group, self.levels[number], at.of(lanes))
        return words

    def gather(self, group: Any, at: Coordinates, component: int) -> Lanes:
        """Return a channel of the four texels that a linear filter would blend."""
        image = self.image
        base = [low for low, _ in map(_split, self._texel_space(image, at, 0.5))]
        words = []
        for corner in _CORNERS:
            index = [low + step for low, step in zip(base, corner, strict=True)]
            words.append(self._texels(group, image, at, index)[:, component])
        return np.stack(words, axis=1)

    def _sample(self, group: Any, image: CudaArray | LinearImage, at: Coordinates) -> Lanes:
        if at.axes[0].dtype.kind == "i":
            return self._fetch_integer(group, image, at)
        if not self.sampler.filter or self.as_integer:
            points = self._texel_space(image, at, 0.0)
            return self._texels(group, image, at, [np.floor(point) for point in points])
        parts = [_split(point) for point in self._texel_space(image, at, 0.5)]
        total: Any = 0.0
        for corner in itertools.product((0, 1), repeat=len(parts)):
            weight: Any = 1.0
            for step, (_, part) in zip(corner, parts, strict=True):
                weight = weight * (part if step else 1 - part)
            index = [low + step for step, (low, _) in zip(corner, parts, strict=True)]
            texels = self._texels(group, image, at, index).view(np.float32)
            total = total + _weighted(texels, weight)
        if len(parts) == 1 and at.slices is None and self.sampler.addresses[1] == BORDER:
            # An H200 reads a row of texels at y = 0, halfway between the row and the border.
            total = (total + self.border) / 2
        words: Lanes = total.astype(np.float32).view(np.uint32)
        return words

    def _fetch_integer(self, group: Any, image: CudaArray | LinearImage, at: Coordinates) -> Lanes:
        """Return the texels with these numbers: no filter, no address mode, zeros outside."""
        sizes, index = image.shape.sizes, []
        inside: Lanes = np.ones(at.axes[0].shape, bool)
        for axis, offset, size in zip(at.axes, at.offsets, sizes, strict=False):
            place = axis.astype(np.int64) + offset
            inside = inside & (place >= 0) & (place < size)
            index.append(np.clip(place, 0, size - 1))
        words = self._read(group, image, at, index)
        words[~inside] = 0
        return words

    def _texel_space(
        self, image: CudaArray | LinearImage, at: Coordinates, shift: float
    ) -> list[Lanes]:
        """Return coordinates in texels, minus `shift`."""
        is_normalized = at.is_face or self.sampler.flags & NORMALIZED
        points = []
        for axis, offset, size in zip(at.axes, at.offsets, image.shape.sizes, strict=False):
            point = axis * size if is_normalized else axis
            point = np.where(np.isnan(point), 0.0, np.clip(point, -_FAR, _FAR))
            points.append(point - shift + offset)
        return points

    def _texels(
        self, group: Any, image: CudaArray | LinearImage, at: Coordinates, points: list[Lanes]
    ) -> Lanes:
        """Return the words of texels, whose numbers the address modes make valid."""
        index = []
        outside: Lanes = np.zeros(points[0].shape, bool)
        for number, (point, size) in enumerate(zip(points, image.shape.sizes, strict=False)):
            place = point.astype(np.int64)
            mode = _CLAMP if at.is_face else self.mode(number)
            if mode == _WRAP:
                place = place % size
            elif mode == _MIRROR:
                place = place % (2 * size)
                place = np.where(place < size, place, 2 * size - 1 - place)
            elif mode == BORDER:
                outside = outside | (place < 0) | (place >= size)
            index.append(np.clip(place, 0, size - 1))
        words = self._read(group, image, at, index)
        words[outside] = self.border_words
        return words

    def mode(self, axis: int) -> int:
        """Return the address mode of an axis.

        The hardware clamps without normalized coordinates, which have no period, and on faces.
        """
        mode = self.sampler.addresses[axis]
        has_period = self.sampler.flags & NORMALIZED
        return _CLAMP if mode in (_WRAP, _MIRROR) and not has_period else mode

    def _read(
        self, group: Any, image: CudaArray | LinearImage, at: Coordinates, index: list[Lanes]
    ) -> Lanes:
        nothing = np.zeros_like(index[0])
        x, y, z = (*index, nothing, nothing)[:3]
        if at.slices is not None:
            z = np.clip(at.slices, 0, image.shape.slices - 1)
        srgb = bool(self.sampler.flags & SRGB)
        texels = image.gather(group, x, y, z)
        return image.shape.item.words(texels, as_integer=self.as_integer, srgb=srgb)


def _split(points: Lanes) -> tuple[Lanes, Lanes]:
    """Return the whole part, and the rest in 256ths: from 0 to 1, both included."""
    low = np.floor(points)
    return low, np.floor((points - low) * 256 + 0.5) / 256


def _weighted(values: Lanes, weight: Lanes) -> Lanes:
    # A texel without weight is not read: it may be a NaN.
    column = weight[:, None]
    product: Lanes = np.where(column == 0, 0.0, values.astype(np.float64) * column)
    return product
