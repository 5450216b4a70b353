"""A call that needs a package that is not installed names the pip command, whatever the call."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).parent / "without_packages.py"
# Other allowed errors: no GPU, no Triton kernel, a missing file.
OTHERS = {"", "DriverNotFoundError", "TypeError", "ValueError", "FileNotFoundError"}


@pytest.fixture(scope="module", params=["cuda", "emulator"])
def found(request):
    environment = {**os.environ, "CULAUNCH_DRIVER": request.param}
    environment.pop("CULAUNCH_DRIVER_TABLE", None)
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_public_name_is_called(found):
    assert found["missed"] == []


def test_what_is_missing_is_named_with_the_command(found):
    for name, (error, text) in found["found"].items():
        if error == "MissingDependencyError":
            assert "pip install" in text, name
        else:
            assert error in OTHERS, f"{name}: {error}: {text}"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("cl.compile", "'culaunch[compile]'"),
        ("cl.empty", "numpy"),
        ("cl.to_device", "numpy"),
        ("cl.driver.set_driver", "'culaunch[emulator]'"),
        ("cl.cpp.build", "'culaunch[embed]'"),
        ("cl.cpp.build_inline", "'culaunch[embed]'"),
        ("cl.cpp.load_inline", "'culaunch[embed]'"),
        ("cl.cpp.stubs", "'culaunch[embed]'"),
        ("testing.assert_allclose", "numpy"),
        ("testing.reset_emulator", "'culaunch[emulator]'"),
        ("testing.use_driver", "'culaunch[emulator]'"),
        ("cl.profile.plot_roofline", "matplotlib"),
        ("triton.compile", "triton"),
    ],
)
def test_the_command_is_the_one_that_helps(found, name, command):
    error, text = found["found"][name]
    if name == "cl.compile" and any(Path("/usr/local/cuda/lib64").glob("libnvrtc.so.1[23]")):
        assert error == ""  # the toolkit's
        return
    assert error == "MissingDependencyError"
    assert f"python -m pip install {command}" in text


def test_loading_on_the_emulator_says_so_too(found):
    error, _ = found["found"]["cl.load"]
    assert error == (
        "MissingDependencyError"
        if found["found"]["cl.driver.driver_name"][0] == "MissingDependencyError"
        else "DriverNotFoundError"
    ) or os.path.exists("/dev/nvidiactl")
