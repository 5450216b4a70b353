"""On a GPU: PyTorch's own kernels in compiled regions, with ``install`` and without.

Results are compared to the bit, and what Inductor generates to the letter.
"""

import difflib
import hashlib
import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from culaunch._image import elf, reader

pytestmark = [pytest.mark.gpu, pytest.mark.slow, pytest.mark.needs("triton", "torch", "gcc")]

PROGRAM = Path(__file__).parents[1] / "shared" / "inductor_program.py"
REGIONS = 11
MEASURED = "autotuned"  # in the names of kernels with measured configurations
WORKERS = "TORCHINDUCTOR_WORKER_START"


def run_both(folder, *names, **environment):
    """Run the program in both ways at once: return the lines that each printed."""
    (code, own, errors), (other_code, installed, other_errors) = results_of(
        folder, *names, **environment
    )
    assert (code, other_code) == (0, 0), (errors, other_errors)
    return own, installed


def results_of(folder, *names, **environment):
    """Run it likewise: return for each its exit code, its lines and the end of its errors."""
    started = []
    for how in ("triton", "installed"):
        own = folder / how
        own.mkdir(parents=True, exist_ok=True)
        # Each generates its own code, with four processes that compile for it.
        more = {
            "TRITON_CACHE_DIR": str(folder / "cache"),
            "TORCHINDUCTOR_CACHE_DIR": str(own / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "4",
            **environment,
        }
        with open(own / "printed.txt", "w") as printed, open(own / "errors.txt", "w") as errors:
            command = [sys.executable, PROGRAM, own, how, *names]
            environ = {**os.environ, **more}
            started.append(subprocess.Popen(command, stdout=printed, stderr=errors, env=environ))
    try:
        codes = [process.wait(timeout=300) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    found = []
    for code, how in zip(codes, ("triton", "installed"), strict=True):
        lines, errors = (
            (folder / how / f"{name}.txt").read_text() for name in ("printed", "errors")
        )
        found.append((code, lines.splitlines(), errors[-4000:]))
    return found


def test_regions(tmp_path):
    own, installed = run_both(tmp_path)
    assert len(own) == REGIONS
    for line, other in zip(own, installed, strict=True):
        assert line == other
    written = sorted(one.name for one in (tmp_path / "triton").glob("*.py"))
    assert len(written) == REGIONS
    for name in written:
        code, other = (
            numbered_names((tmp_path / how / name).read_text()) for how in ("triton", "installed")
        )
        assert "def call" in code
        difference = difflib.unified_diff(code.splitlines(), other.splitlines(), lineterm="", n=1)
        # A matrix product's configuration is the one that was measured as the fastest.
        if name != "products.py":
            assert "\n".join(difference) == "", name


def test_ahead_of_time(tmp_path):
    """The package has the same kernels; it runs where PyTorch's own does."""
    own, installed = run_both(tmp_path, "packaged")
    assert own == installed
    codes, other_codes = (
        packaged_code(tmp_path / how / "module.pt2") for how in ("triton", "installed")
    )
    assert [name for name, _ in codes] == [name for name, _ in other_codes]
    fixed = [one for one in codes if MEASURED not in one[0]]
    assert len(fixed) > 0
    assert fixed == [one for one in other_codes if MEASURED not in one[0]]
    # Each run packages the configuration of the autotuned one that it measured as the fastest.
    compiled = {code_of(one.read_bytes()) for one in (tmp_path / "cache").rglob("*.cubin")}
    measured = [one for one in (*codes, *other_codes) if MEASURED in one[0]]
    assert len(measured) > 0
    assert {code for _, code in measured} <= {code for _, code in compiled}
    (code, own, errors), (other_code, installed, other_errors) = results_of(tmp_path, "loaded")
    assert (code, own) == (other_code, installed), (errors, other_errors)
    if code == -signal.SIGSEGV:
        pytest.skip("needs packages-that-load: PyTorch ends so without culaunch in its process")
    assert code == 0, errors
    assert len(own) == 1


def test_workers_that_are_forked(tmp_path):
    own, installed = run_both(tmp_path, "tuned", **{WORKERS: "fork"})
    assert len(own) == 1
    assert own == installed


def packaged_code(package):
    """Return the name and the digest of the code of each kernel in a package, by name."""
    with zipfile.ZipFile(package) as files:
        return sorted(
            code_of(files.read(name)) for name in files.namelist() if name.endswith(".cubin")
        )


def code_of(cubin):
    """Return the kernel's name and a digest of its instructions, without the paths of sources."""
    binary = elf.Elf(reader.Reader(memoryview(cubin), "a cubin"))
    names, found = [], hashlib.sha256()
    for section in binary.sections():
        name = binary.name(section)
        if name.startswith(".text"):
            names.append(name.removeprefix(".text."))
            found.update(binary.contents(section).view)
    return " ".join(names), found.hexdigest()


def numbered_names(code):
    """Leave out the names of files, which are digests of folders among other things."""
    names = {}
    return re.sub(
        r"FOLDER[^\s'\"]*", lambda found: names.setdefault(found[0], f"file{len(names)}"), code
    )
