"""The Triton kernels that PyTorch tests torch.compile with, which are in its wheel."""

import importlib
import sys
import types

import torch.utils._triton

# The module asks which GPU there is, of a module that imports all of PyTorch's tools for tests, and
# with them packages that a user does not have.
_ASKED = "torch.testing._internal.inductor_utils"
_FLAGS = ("HAS_CUDA_AND_TRITON", "HAS_GPU", "HAS_XPU_AND_TRITON")


def load():
    """Import the module that has them, though there may be no GPU."""
    before = sys.modules.get(_ASKED)
    sys.modules[_ASKED] = types.SimpleNamespace(**dict.fromkeys(_FLAGS, False))
    has_triton = torch.utils._triton.has_triton
    torch.utils._triton.has_triton = lambda: True
    try:
        return importlib.import_module("torch.testing._internal.triton_utils")
    finally:
        torch.utils._triton.has_triton = has_triton
        del sys.modules[_ASKED]
        if before is not None:
            sys.modules[_ASKED] = before
