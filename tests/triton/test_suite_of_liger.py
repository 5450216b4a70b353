"""Liger's own tests of its kernels, natively on the emulator: from the source of the installed
version, which is fetched for the run."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.needs("triton", "torch", "liger_kernel"), pytest.mark.slow]

# Those that ask nothing of a GPU's properties. In float32: they compare with PyTorch on the host,
# whose bfloat16 is less accurate than the kernels.
FILES = ("softmax", "sparsemax", "relu_squared", "layer_norm", "poly_norm")
KERNELS = {
    "_softmax_single_block_forward_kernel", "_softmax_single_block_backward_kernel",
    "_sparsemax_forward_kernel", "_sparsemax_backward_kernel",
    "_relu_squared_forward_kernel", "_relu_squared_backward_kernel",
    "_layer_norm_forward_kernel", "_layer_norm_backward_kernel",
    "_poly_norm_forward_kernel", "_poly_norm_backward_kernel",
}  # fmt: skip


@pytest.fixture
def suite(tmp_path):
    """Fetch the source of the version that is installed; its folder."""
    version = importlib.metadata.version("liger-kernel")
    wanted = f"liger-kernel=={version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", ":all:", "--no-build-isolation", "--dest", tmp_path, wanted]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    found = sorted(tmp_path.glob("liger_kernel-*.tar.gz"))
    if not found:
        pytest.skip(f"needs package-index, for the source of {wanted}: {done.stderr[-300:]}")
    with tarfile.open(found[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / f"liger_kernel-{version}"


def test_its_own_tests_pass_and_every_launch_is_native(suite):
    paths = [str(Path(__file__).parent), str(suite)]
    environment = {
        **os.environ, "CULAUNCH_DRIVER": "emulator", "CULAUNCH_TRITON_CHECK": "1",
        "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", "-p", "liger_suite_plugin", "--culaunch-triton"]
    command += ["-p", "no:cacheprovider", "-W", "ignore", "--rootdir", suite, "-o", "addopts="]
    command += ["-k", "not dtype1", "-q"]
    command += [suite / "test" / "transformers" / f"test_{name}.py" for name in FILES]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        cwd=suite,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    # The table of the report: kernel, launches natively, launches by Triton.
    rows = dict(re.findall(r"^liger_kernel\S*\.(\w+) +(\d+ +\d+)\b", done.stdout, re.MULTILINE))
    launches = {kernel: [*map(int, row.split())] for kernel, row in rows.items()}
    assert set(launches) >= KERNELS
    assert all(native > 0 and by_triton == 0 for native, by_triton in launches.values()), launches
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed
    assert int(passed[1]) >= 40
