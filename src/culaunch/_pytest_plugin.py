"""The pytest plugin: the fixture ``culaunch_driver`` with its marker, and options.

pytest loads this in every run where culaunch is installed. It therefore imports nothing of culaunch
until a test uses the fixture, or an option asks for it.
"""

from __future__ import annotations

import json
import os
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
        "--culaunch-profile", action="store_true", help="profile the launches of every test"
    )
    group.addoption(
        "--culaunch-sarif",
        metavar="FILE",
        help="write the emulator's reports of failed tests as SARIF, for annotations in CI",
    )
    group.addoption(
        "--culaunch-triton-only",
        action="append",
        metavar="PATTERN",
        help="only those whose module.name matches; may be repeated",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and install native launches if they are asked for."""
    config.addinivalue_line(
        "markers",
        "culaunch_drivers(*names): run a test that uses culaunch_driver only on these drivers",
    )
    config.addinivalue_line(
        "markers",
        "culaunch_seeds(count): repeat a test with this many orders of blocks and warps on the "
        "emulator",
    )
    if config.getoption("--culaunch-triton") or config.getoption("--culaunch-triton-only"):
        config.pluginmanager.register(_NativeTriton(config), "culaunch-triton")
    if config.getoption("--culaunch-profile"):
        config.pluginmanager.register(_Profiles(), "culaunch-profile")
    if config.getoption("--culaunch-sarif"):
        file = os.path.join(config.invocation_params.dir, config.getoption("--culaunch-sarif"))
        config.pluginmanager.register(_Sarif(file), "culaunch-sarif")


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


class _Profiles:
    """Profiles each test, and shows the tests with launches at the end."""

    _TITLE = "Launches by culaunch"

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        import culaunch as cl

        block = cl.profile.launches()
        try:
            profile = block.__enter__()
        except cl.DriverNotFoundError:  # then the test launches nothing
            yield
            return
        yield
        block.__exit__(None, None, None)
        if profile.launches:
            # pytest-xdist sends the sections of a report to the process that has the terminal.
            item.add_report_section("call", self._TITLE, str(profile))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = [text for title, text in report.sections if title == f"Captured {self._TITLE} call"]
        if report.when == "call" and found:
            self._found.append((report.nodeid, found[-1]))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section(self._TITLE)
        for name, text in self._found:
            terminalreporter.write_line(f"{name}: {text}")


class _Sarif:
    """Collects the emulator's reports of tests that fail, and writes them at the end."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._results: list[dict[str, Any]] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        outcome: Any = yield
        report: pytest.TestReport = outcome.get_result()
        if not report.failed or call.excinfo is None:
            return
        from culaunch._emulator import sarif_result

        file, line, _ = item.location
        caller = (os.path.join(item.config.rootpath, file), (line or 0) + 1)
        # pytest-xdist sends the attributes of a report to the process that writes the file.
        report.culaunch_sarif = [  # type: ignore[attr-defined]
            sarif_result(found, caller) for found in _emulator_reports(call.excinfo.value)
        ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._results += getattr(report, "culaunch_sarif", [])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            return
        from culaunch._base.outputs import write_output
        from culaunch._emulator import sarif_log

        write_output(self._file, json.dumps(sarif_log(self._results), indent=1).encode())


def _emulator_reports(error: BaseException | None) -> Iterator[Any]:
    """Return the records of an exception, and of those that led to it."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        report = getattr(error, "report", None)
        if report is not None and type(report).__module__.startswith("culaunch."):
            yield report
        error = error.__cause__ or error.__context__


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each seed, and for each driver, unless it is parametrised by hand."""
    seeds = metafunc.definition.get_closest_marker("culaunch_seeds")
    if seeds is not None:
        if len(seeds.args) != 1 or type(seeds.args[0]) is not int or seeds.args[0] < 1:
            raise pytest.UsageError(
                f"culaunch_seeds must have one int of at least 1 (got {seeds.args!r})"
            )
        # The name of a failed test has its seed.
        metafunc.fixturenames.append("culaunch_seed")
        count = range(seeds.args[0])
        metafunc.parametrize("culaunch_seed", count, indirect=True, ids=[f"seed{i}" for i in count])
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
    """Choose a driver for the test and give its name; "cuda" is skipped if no GPU is.

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


@pytest.fixture
def culaunch_seed(request: pytest.FixtureRequest) -> int:
    """Give the seed with which a test is repeated."""
    seed: int = request.param
    return seed


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a test with the order of its seed; by now its fixtures have chosen the driver."""
    parameters = getattr(item, "callspec", None)
    seed = None if parameters is None else parameters.params.get("culaunch_seed")
    if seed is None:
        yield
        return
    from culaunch import testing

    with testing.emulator_options(seed=seed):
        yield
