"""What tests of installed kernels share."""

import pytest


@pytest.fixture
def kernels():
    """Read the kernels anew, so that no test has seen them."""
    import importlib

    import installed_kernels

    return importlib.reload(installed_kernels)
