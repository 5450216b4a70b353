"""Liger's own tests of its kernels, natively on the emulator: from the source of the installed
version, which is fetched for the run."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.needs("triton", "torch", "liger_kernel"), pytest.mark.slow]

TOOLS = Path(__file__).parents[3] / "tools" / "third_party"
WHOLE = os.environ.get("CULAUNCH_WHOLE_SUITES") == "1"
FILES = (
    "softmax", "sparsemax", "relu_squared", "layer_norm", "poly_norm", "rms_norm",
    "fused_add_rms_norm", "group_norm", "cross_entropy", "multi_token_attention",
    "fused_linear_cross_entropy", "fused_linear_jsd", "fused_linear_kl_div", "mhc", "tvd",
    "attn_res", "dyt", "fused_moe",
)  # fmt: skip
# And those whose smallest tests take seconds.
LONG_FILES = ("embedding", "grpo_loss", "jsd", "kl_div", "modulated_rms_norm")
# In float32: they compare with PyTorch on the host, whose bfloat16 is less accurate than the
# kernels. Its sum of as many numbers as in the last of these is less accurate, too.
FITTING = "not dtype1 and not dtype2 and not bfloat16 and not 16-48-12-8192"
# One of these shapes may take all the time; several devices are not to be had.
UNFIT = "32000", "64000", "128256", "151936", "dtensor"
# All shapes of five files, and small ones of the others.
SMALL = (
    "not 3-512-128 and not 8-64-1024 and not 2-128-512 and not (poly_norm and 5-123-123) and not "
    "(multidimensional and shape2) and (test_softmax or test_sparsemax or test_relu_squared or "
    "test_layer_norm or test_poly_norm or functional and (2-2-8 or 9-7-41 or 2-4-4-8-3-1 "
    "or 1-1-1023 or 2-32-256) or spatial_dims and shape0 or allows_unused_outputs and 2-4-2-32 or "
    "with_ties and 2-8-4096 or test_K_equals_E)"
)
# The kernels of each operator have its name in theirs.
OPERATORS = {
    "softmax", "sparsemax", "relu_squared", "layer_norm", "poly_norm", "_rms_norm",
    "fused_add_rms_norm", "group_norm", "cross_entropy", "_mask_bwd", "jsd", "kl_div", "mhc",
    "tv_distance", "attn_res", "dyt", "moe",
}  # fmt: skip
SECONDS = 1500  # for all of it, if all of it is asked for


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


def test_its_own_tests_pass_and_every_launch_is_native(run_after_torch, suite):
    paths = [str(Path(__file__).parents[1] / "shared"), str(TOOLS), str(suite)]
    environment = {
        **os.environ, "CULAUNCH_DRIVER": "emulator", "CULAUNCH_TRITON_CHECK": "1",
        "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    environment.pop("PYTEST_ADDOPTS", None)
    command = ["-m", "pytest", "-p", "liger_suite_plugin", "--culaunch-triton"]
    command += ["-p", "no:cacheprovider", "-W", "ignore", "--rootdir", suite, "-o", "addopts="]
    chosen = " and ".join(f"not {size}" for size in UNFIT) if WHOLE else SMALL
    command += ["-q", "-k", f"{FITTING} and {chosen}"]
    if WHOLE:  # in an order that tries something of everything while there is time
        command += ["-p", "suite_plugin"]
        environment["THIRD_INTO"] = str(suite / "outcomes")
        environment["THIRD_UNTIL"] = str(time.time() + SECONDS)
    files = FILES + LONG_FILES if WHOLE else FILES
    command += [suite / "test" / "transformers" / f"test_{name}.py" for name in files]
    done = run_after_torch(command, env=environment, cwd=suite, timeout=SECONDS + 600)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    # The table of the report: kernel, launches natively, launches by Triton.
    rows = dict(re.findall(r"^liger_kernel\S*\.(\w+) +(\d+ +\d+)\b", done.stdout, re.MULTILINE))
    launches = {kernel: [*map(int, row.split())] for kernel, row in rows.items()}
    assert all(native > 0 and by_triton == 0 for native, by_triton in launches.values()), launches
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed
    assert int(passed[1]) >= (40 if WHOLE else 90)  # of all, how many depends on the machine
    assert WHOLE or {one for one in OPERATORS if not any(one in name for name in launches)} == set()
