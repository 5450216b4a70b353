"""Arrays of NumPy and torch with the names that a body has: bodies run on them as plain Python."""

from __future__ import annotations

import numpy as np


class Real:
    """An array of NumPy or torch; views are made by its own library."""

    def __init__(self, array):
        self.array = array
        self.is_torch = not isinstance(array, np.ndarray)

    shape = property(lambda self: tuple(self.array.shape))
    ndim = property(lambda self: self.array.ndim)
    size = property(lambda self: int(np.prod(self.shape)))

    @property
    def strides(self):
        if self.is_torch:
            return tuple(self.array.stride())
        return tuple(stride // self.array.itemsize for stride in self.array.strides)

    def is_contiguous(self):
        if self.is_torch:
            return self.array.is_contiguous()
        return self.array.flags.c_contiguous

    @property
    def T(self):
        return self.permute(*reversed(range(self.ndim)))

    @property
    def mT(self):
        if self.ndim < 2:  # NumPy has it from 2.0 on
            raise ValueError("mT needs two dimensions")
        return self.swapaxes(-1, -2)

    def swapaxes(self, a, b):
        # NumPy's own error is a ValueError as well, and torch takes axis 0 of a number.
        if not all(-self.ndim <= axis < self.ndim for axis in (a, b)):
            raise IndexError(f"no axes {a} and {b}")
        return Real(self.array.swapaxes(a, b))

    def permute(self, *axes):
        return Real(self.array.permute(axes) if self.is_torch else self.array.transpose(axes))

    def transpose(self, *axes):
        if type(axes[0]) is tuple:
            return self.permute(*axes[0])
        return Real(self.array.transpose(*axes) if self.is_torch else self.array.swapaxes(*axes))

    def reshape(self, *shape):
        if self.is_torch:
            try:
                self.array.reshape(shape)
            except RuntimeError as error:
                raise ValueError(str(error)) from None
        else:
            self.array.reshape(shape)
        if not self.is_contiguous():  # a body makes views alone
            raise ValueError("no view")
        return Real(self.array.reshape(shape))

    def __getitem__(self, key):
        try:
            found = self.array[key]  # of NumPy, a number if no dimension is left
        except ValueError as error:  # torch's, of an index past 64 bits
            raise IndexError(str(error)) from None
        return Real(found if self.is_torch else np.asarray(found))
