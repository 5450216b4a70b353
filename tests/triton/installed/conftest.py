"""What tests of installed kernels share."""

import pytest


@pytest.fixture
def kernels():
    """Read the kernels anew, so that no test has seen them."""
    import importlib

    import installed_kernels

    return importlib.reload(installed_kernels)


@pytest.fixture
def counted_anew(on_emulator):
    """Count from zero, and leave nothing installed."""
    from culaunch.triton import report, uninstall

    report(clear=True)
    yield
    uninstall()
