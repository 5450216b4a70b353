"""The tools that run suites of others both ways, on suites of a few lines."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[1] / "tools" / "third_party"
TOOL = TOOLS / "compare_suites.py"
SUITE = """
import os
import pytest


def test_same():
    pass


def test_worse():
    assert "CULAUNCH_TRITON_CHECK" not in os.environ


def test_better():
    assert "CULAUNCH_TRITON_CHECK" in os.environ
"""


# Scripts: what each leaves, natively and otherwise.
NATIVE = 'import os, torch\nnative = "CULAUNCH_TRITON_CHECK" in os.environ\n'
SCRIPTS = {
    "same": "result = {'one': torch.ones(3), 'two': [torch.rand(4), 5]}",
    # Results that differ in each run are not reported.
    "different": "result = {'tensor': torch.ones(3) + native * 1e-7, 'process': os.getpid()}",
    "different in two runs of Triton": "result = torch.tensor([float(os.getpid())])",
    "different where nothing was written": "result = torch.ones(2) + native\n"
    "result = torch.empty(2) if torch.are_deterministic_algorithms_enabled() else result",
    "failed the same way": "raise ValueError(f'at {hex(7)}')",
    "failed differently": "raise ValueError if native else TypeError",
    "failed natively alone": "assert not native\nresult = torch.ones(1)",
    "failed by Triton alone": "assert native",
    "ran": "print('nothing is left')",
    "no time": "import time; time.sleep(60)",
}
KERNEL = """
import torch, triton
import triton.language as tl


@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


x = torch.randn(100, device="cuda")
result = torch.empty_like(x)
assert x.is_cuda
double[(triton.cdiv(100, 64),)](x, result, 100, BLOCK=64)
if BEYOND:
    double[(2,)](x, torch.empty(1), 1 << 20, BLOCK=64)
"""


@pytest.mark.needs("triton", "torch")
@pytest.mark.slow
def test_scripts_that_went_worse_are_named(tmp_path):
    folder, output = tmp_path / "scripts", tmp_path / "output"
    folder.mkdir()
    for name, text in SCRIPTS.items():
        (folder / f"{name.replace(' ', '_')}.py").write_text(NATIVE + text)
    (tmp_path / "suites.json").write_text(
        json.dumps({"some": {"scripts": "scripts", "each": 8}, "none": {"scripts": "absent"}})
    )
    environment = {key: one for key, one in os.environ.items() if key != "CULAUNCH_DRIVER"}
    done = subprocess.run(
        [sys.executable, TOOL, tmp_path, "--output", output, "--jobs", "2", "--only", "some"],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    rows = json.loads((output / "some" / "scripts.json").read_text())
    assert {row["name"]: row["outcome"] for row in rows} == {
        name.replace(" ", "_"): name for name in SCRIPTS
    }, done.stdout + done.stderr
    assert done.returncode == 1
    assert "worse than by Triton, in all suites: 3" in done.stdout
    assert "torch.float32, up to 1.19e-07 apart" in done.stdout
    assert "native: AssertionError" in done.stdout
    assert not list(output.glob("**/*.pt"))


def test_without_time_for_a_second_run_it_is_not_said_who_differs(monkeypatch):
    """A race of the script's own would be called a difference of ours."""
    monkeypatch.syspath_prepend(str(TOOLS))
    from script_outcome import OUTCOMES, Script

    ran = {"ended": "ok", "results": 1}
    script = Script(Path("x.py"), on_emulator=False, ended={"triton": ran, "native": ran})
    script.differences = {"native": {"result": "far apart"}}
    assert script.next_way == "triton again"
    unknown = "different, and no time for a second run of Triton"
    assert script.outcome == unknown
    script.ended["triton again"] = {"ended": "no time"}
    assert script.outcome == unknown
    assert OUTCOMES[unknown], "it is a reason to run it again"
    script.ended["triton again"] = ran
    script.differences["triton again"] = {"result": "far apart, too"}
    assert script.outcome == "different in two runs of Triton"


@pytest.mark.needs("triton", "torch", "numpy")
@pytest.mark.slow
def test_scripts_for_a_gpu_run_on_the_emulator(tmp_path):
    for name, beyond in (("within", False), ("beyond", True)):
        (tmp_path / f"{name}.py").write_text(KERNEL.replace("BEYOND", str(beyond)))
    output = tmp_path / "output"
    done = subprocess.run(
        [sys.executable, TOOLS / "compare_scripts.py", tmp_path, "--output", output,
         "--emulator", "--jobs", "2"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    rows = {row["name"]: row for row in json.loads((output / "scripts.json").read_text())}
    assert rows["within"]["outcome"] == "same", done.stdout + done.stderr
    assert (rows["within"]["results"], rows["within"]["native"], rows["within"]["triton"]) == (
        2,
        1,
        0,
    )
    assert rows["beyond"]["outcome"] == "stopped at an illegal access"
    assert done.returncode == 0


# Matrices, attention, reductions, random numbers, integers, copies.
TRITONBENCH = (
    "add_value", "attn_fwd_causal", "chunked_cumsum_fwd", "cross_entropy1", "int8_quantization",
    "kcache_copy_triton", "l2_norm_bwd", "matmul_triton1", "rmsnorm_fused", "seeded_dropout",
    "softmax_triton1", "swiglu_backward",
)  # fmt: skip


@pytest.mark.needs("triton", "torch", "numpy", "CULAUNCH_TRITONBENCH")
@pytest.mark.slow
def test_scripts_of_tritonbench_run_on_the_emulator(tmp_path):
    command = [sys.executable, TOOLS / "compare_scripts.py", os.environ["CULAUNCH_TRITONBENCH"]]
    command += ["--output", tmp_path, "--emulator", "--jobs", "2", "--each", "90"]
    command += [word for name in TRITONBENCH for word in ("--only", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = json.loads((tmp_path / "scripts.json").read_text())
    assert {row["name"]: row["outcome"] for row in rows} == dict.fromkeys(TRITONBENCH, "same"), (
        done.stdout + done.stderr
    )
    assert all(row["native"] and not row["triton"] for row in rows)


@pytest.mark.needs("triton", "torch")
@pytest.mark.slow
def test_a_test_that_passes_by_triton_alone_is_named(tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "test_it.py").write_text(SUITE)
    (tmp_path / "some" / "test_broken.py").write_text("import nothing_has_this_name")
    suites = {"some": {"tests": "some", "files": {"test_it.py": 1, "test_broken.py": 1}}}
    (tmp_path / "suites.json").write_text(json.dumps(suites))
    output = tmp_path / "output"
    done = subprocess.run(
        [sys.executable, TOOL, tmp_path, "--output", output, "--seconds", "90", "--jobs", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "3 tests both ways, 2 passed by Triton" in done.stdout
    assert "passed by Triton alone: 1, natively alone: 1" in done.stdout
    assert "WORSE some.test_it.py.jsonl:" in done.stdout
    assert "test_broken.py triton: nothing ran" in done.stdout
    # A line that was cut by the end of a process is not an outcome.
    with (output / "some.native.test_it.py.jsonl").open("a") as file:
        file.write('{"id": "half')
    sys.path.insert(0, str(TOOLS))
    try:
        from compare_suites import compared
    finally:
        sys.path.remove(str(TOOLS))
    assert compared("some", output)[1] == 1
