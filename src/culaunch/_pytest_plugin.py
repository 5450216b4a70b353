"""The pytest plugin: the fixture ``culaunch_driver`` with its marker, and ``--culaunch-triton``.

pytest loads this in every run where culaunch is installed. It therefore imports nothing of culaunch
until a test uses the fixture, or the command line asks for native Triton kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_DRIVERS = ("emulator", "cuda")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what tries native launches of Triton kernels without an edit."""
    group = parser.getgroup("culaunch")
    group.addoption(
        "--culaunch-triton", action="store_true", help="launch every Triton kernel natively"
    )
    group.addoption(
        "--culaunch-triton-only",
        action="append",
        metavar="PATTERN",
        help="only those whose module.name matches; may be repeated",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and install native launches where they are asked for."""
    config.addinivalue_line(
        "markers",
        "culaunch_drivers(*names): run a test that takes culaunch_driver on these drivers only",
    )
    if config.getoption("--culaunch-triton") or config.getoption("--culaunch-triton-only"):
        config.pluginmanager.register(_NativeTriton(config), "culaunch-triton")


class _NativeTriton:
    """Installs native launches for a run, and says at its end what became of them."""

    def __init__(self, config: pytest.Config) -> None:
        from culaunch import triton

        self._triton = triton
        self._installation = triton.install(
            include=config.getoption("--culaunch-triton-only") or "*"
        )
        self._of_workers: list[str] = []

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # A worker of pytest-xdist has no terminal: its counts go to the process that has one.
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["culaunch_triton"] = str(self._triton.report())

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        found = getattr(node, "workeroutput", {}).get("culaunch_triton")
        if found is not None:
            self._of_workers.append(f"{node.gateway.id}:\n{found}")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("Triton kernels by culaunch")
        for found in self._of_workers or [str(self._triton.report())]:
            terminalreporter.write_line(found)

    def pytest_unconfigure(self) -> None:
        self._installation.__exit__()


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
