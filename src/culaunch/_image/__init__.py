"""What is in an image: cubin, fatbin, PTX. Pure Python; needs no GPU and no toolkit."""

from __future__ import annotations

from culaunch._image.image import Image

__all__ = ["Image"]
