"""Helpers of the tests of installed kernels."""

import pytest


@pytest.fixture
def kernels():
    """Import the kernels again, so they are new to each test."""
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
