"""The pytest plugin of `culaunch.testing`: the fixture ``culaunch_driver`` and its marker.

pytest loads this in every run where culaunch is installed, so it imports nothing of culaunch until
a test asks for the fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_DRIVERS = ("emulator", "cuda")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "culaunch_drivers(*names): run a test that takes culaunch_driver on these drivers only",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each driver, unless it is parametrised by hand."""
    if "culaunch_driver" not in metafunc.fixturenames:
        return
    for mark in metafunc.definition.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
        if "culaunch_driver" in (
            names.replace(",", " ").split() if isinstance(names, str) else names
        ):
            return
    marker = metafunc.definition.get_closest_marker("culaunch_drivers")
    names = marker.args if marker else _DRIVERS
    metafunc.parametrize("culaunch_driver", names, indirect=True)


@pytest.fixture
def culaunch_driver(request: pytest.FixtureRequest) -> Iterator[str]:
    """Choose a driver for the test and give its name; "cuda" is skipped where no GPU is.

    A fault that the test provokes on the emulated device is forgotten when it ends.
    """
    from culaunch import testing

    name: str = request.param
    if name == "cuda" and not testing.has_gpu():
        pytest.skip("needs a GPU")
    if name == "emulator":
        pytest.importorskip("numpy", reason="needs numpy")
    with testing.use_driver(name):
        yield name
