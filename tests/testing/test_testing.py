"""culaunch.testing: drivers to choose from, copies, tolerances, and the pytest plugin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import culaunch as cl
from culaunch import testing

np = pytest.importorskip("numpy")

ADD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 out, .param .u32 value) {
.reg .b64 %at; .reg .b32 %v, %i;
ld.param.u64 %at, [out]; cvta.to.global.u64 %at, %at; ld.param.u32 %v, [value];
mov.u32 %i, %tid.x; mad.wide.u32 %at, %i, 4, %at; st.global.u32 [%at], %v; ret;
}
.visible .entry stop() { trap; }
"""


# ---- arrays


def test_copies_there_and_back(culaunch_driver):
    x = np.arange(10, dtype=np.int32)
    there = testing.to_driver(x)
    cl.load(cl.Image(ADD.encode()))["add"][1, 5](there, 7)
    back = testing.from_driver(there)
    assert back.tolist() == [7] * 5 + [5, 6, 7, 8, 9]
    assert x.tolist() == list(range(10)), "the original is not the kernel's"
    back[:] = 0
    assert testing.from_driver(there)[0] == 7


def test_lists_and_scalars_become_arrays(culaunch_driver):
    assert testing.from_driver(testing.to_driver([[1, 2], [3, 4]])).shape == (2, 2)


@pytest.mark.slow
def test_torch_tensors_stay_torch_tensors(culaunch_driver):
    torch = pytest.importorskip("torch")
    x = torch.arange(10, dtype=torch.int32)
    there = testing.to_driver(x)
    assert isinstance(there, torch.Tensor)
    cl.load(cl.Image(ADD.encode()))["add"][1, 5](there, 7)
    assert testing.from_driver(there).tolist() == [7] * 5 + [5, 6, 7, 8, 9]
    assert x[0] == 0
    testing.assert_allclose(there, [7] * 5 + [5, 6, 7, 8, 9])


# ---- tolerances


@pytest.mark.parametrize(
    ("dtype", "near", "far"),
    [
        ("float16", 1.001, 1.003),
        ("float32", 1.000001, 1.00002),
        ("float64", 1 + 1e-7, 1 + 3e-7),
        ("complex64", 1.000001j + 1, 1.00005j + 1),
    ],
)
def test_the_type_decides_on_the_tolerance(dtype, near, far):
    one = np.ones(4, dtype)
    wanted = np.full(4, 1 + 1j if "complex" in dtype else 1.0)
    got = (one * 0 + near).astype(dtype)
    testing.assert_allclose(got, wanted)
    with pytest.raises(AssertionError, match=f"tolerance of {dtype}"):
        testing.assert_allclose((one * 0 + far).astype(dtype), wanted)


@pytest.mark.slow
def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    got = np.full(3, 1.0078125, ml_dtypes.bfloat16)
    testing.assert_allclose(got, np.ones(3))
    with pytest.raises(AssertionError):
        testing.assert_allclose(got, np.full(3, 1.1))
    torch = pytest.importorskip("torch")
    testing.assert_allclose(torch.ones(3, dtype=torch.bfloat16), got)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_integers_are_equal_or_not(dtype):
    got = np.array([0, 1, 1], dtype)
    testing.assert_allclose(got, [0, 1, 1])
    with pytest.raises(AssertionError):
        testing.assert_allclose(got, [0, 1, 0])


def test_tolerances_of_ones_own():
    got = np.ones(3, np.float32)
    testing.assert_allclose(got, [1.4] * 3, rtol=0.3)
    testing.assert_allclose(got, [1.4] * 3, atol=0.5)
    testing.assert_allclose(np.arange(3), [0.4, 1.4, 2.4], atol=0.5)
    with pytest.raises(AssertionError):
        testing.assert_allclose(got, [1.0000001] * 3, rtol=0, atol=0)


def test_nans_and_infinities_are_alike():
    values = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    testing.assert_allclose(values, values.astype(np.float64))
    with pytest.raises(AssertionError):
        testing.assert_allclose(values, values[::-1])


def test_shapes():
    testing.assert_allclose(np.ones((2, 3), np.float32), 1.0)
    with pytest.raises(AssertionError, match="the shapes differ"):
        testing.assert_allclose(np.ones(3, np.float32), np.ones(4))


def test_a_type_without_tolerance():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    got = np.ones(3, ml_dtypes.float8_e4m3fn)
    with pytest.raises(
        TypeError, match="float8_e4m3fn has no default tolerance: give rtol= or atol="
    ):
        testing.assert_allclose(got, [1] * 3)
    testing.assert_allclose(got, [1.1] * 3, rtol=0.125)


# ---- drivers


def test_a_driver_for_a_block(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "/no/such/driver.so")
    monkeypatch.delenv("CULAUNCH_DRIVER_TABLE", raising=False)
    with testing.use_driver("emulator"):
        assert cl.driver.driver_name() == "emulator"
        module = cl.load(cl.Image(ADD.encode()))
        with pytest.raises(cl.DriverError, match="kernel stop"):
            module["stop"][1, 1]()
    assert os.environ["CULAUNCH_DRIVER"] == "/no/such/driver.so"
    assert "CULAUNCH_DRIVER_TABLE" not in os.environ
    with testing.use_driver("emulator"):  # the fault ended with the block before
        module["add"][1, 1](np.zeros(1, np.uint32), 1)


def test_a_driver_that_is_not_there():
    before = os.environ.get("CULAUNCH_DRIVER")
    with pytest.raises(cl.DriverNotFoundError), testing.use_driver("/no/such/driver.so"):
        pass
    assert os.environ.get("CULAUNCH_DRIVER") == before


def test_whether_there_is_a_gpu(has):
    assert testing.has_gpu() == has("gpu")


def test_unknown_options():
    with testing.use_driver("emulator"), pytest.raises(TypeError):
        testing.emulator_options(check_everything=True)


# ---- the plugin

KERNEL_TESTS = f"""
import numpy as np
import pytest
import culaunch as cl
from culaunch import testing

PTX = {ADD!r}

def test_add(culaunch_driver):
    out = testing.to_driver(np.zeros(8, np.uint32))
    cl.load(cl.Image(PTX.encode()))["add"][1, 8](out, 3)
    testing.assert_allclose(out, [3] * 8)

@pytest.mark.culaunch_drivers("emulator")
@pytest.mark.parametrize("again", range(2))
def test_faults_end_with_the_test(culaunch_driver, again):
    assert culaunch_driver == "emulator"
    with pytest.raises(cl.DriverError):
        cl.load(cl.Image(PTX.encode()))["stop"][1, 1]()

@pytest.mark.parametrize("culaunch_driver", ["emulator"], indirect=True)
def test_parametrised_by_hand(culaunch_driver):
    assert cl.driver.driver_name() == "emulator"
"""


def run_pytest(folder, *arguments):
    (folder / "test_kernels.py").write_text(textwrap.dedent(KERNEL_TESTS))
    home = str(Path(cl.__file__).parents[1])  # the child starts in another folder
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "PYTHONPATH": home}
    command = [sys.executable, "-m", "pytest", "-p", "culaunch._pytest_plugin", "-c", os.devnull]
    command += [
        "-p",
        "no:benchmark",
        "--rootdir",
        str(folder),
        "-rs",
        "-v",
        "--strict-markers",
        *arguments,
        str(folder),
    ]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, cwd=folder
    ).stdout


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")])
def test_the_plugin_profiles_each_test(tmp_path, workers):
    said = run_pytest(tmp_path, "--culaunch-profile", *workers)
    assert "Launches by culaunch" in said
    rows = re.findall(r"test_kernels.py::(\S+): (\d+) launch\w* on culaunch emulator", said)
    assert ("test_add[emulator]", "1") in rows
    assert "Launches by culaunch" not in run_pytest(tmp_path)


@pytest.mark.slow
def test_the_plugin(tmp_path, has):
    said = run_pytest(tmp_path, "-W", "error")
    assert "test_add[emulator] PASSED" in said
    assert f"test_add[cuda] {'PASSED' if has('gpu') else 'SKIPPED (needs a GPU)'}" in said
    assert "test_faults_end_with_the_test[emulator-0] PASSED" in said
    assert "test_faults_end_with_the_test[emulator-1] PASSED" in said
    assert "[cuda-0]" not in said
    assert "test_parametrised_by_hand[emulator] PASSED" in said
    assert "failed" not in said


@pytest.mark.slow
def test_the_plugin_documents_its_marker_and_fixture(tmp_path):
    assert "@pytest.mark.culaunch_drivers(*names): run a test" in run_pytest(tmp_path, "--markers")
    assert "culaunch_driver" in run_pytest(tmp_path, "--fixtures")


def test_no_pytest_without_tests():
    code = "import sys, culaunch; culaunch.testing.has_gpu(); print('pytest' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("kind", ["f4", "i4"])
@pytest.mark.parametrize(("got", "wanted"), [((2,), (3,)), ((2,), (2, 2)), ((2, 3), (3, 2))])
def test_shapes_that_do_not_go_together_are_a_difference(kind, got, wanted):
    with pytest.raises(AssertionError, match="the shapes differ"):
        testing.assert_allclose(np.zeros(got, kind), np.zeros(wanted, kind))
    testing.assert_allclose(np.zeros(got, kind), 0)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(7, dtype="f4"),
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.arange(24, dtype="i2").reshape(2, 3, 4)[:, ::2],
        np.zeros((0, 3)),
        np.float32(3),
        np.array(["one", "three"]),
    ],
    ids=range(6),
)
def test_arrays_are_aligned_as_on_a_gpu(array):
    with testing.use_driver("emulator"):
        for _ in range(5):
            copy = testing.to_driver(array)
            assert copy.nbytes == 0 or copy.ctypes.data % 256 == 0
            assert np.array_equal(copy, array)
            assert copy.flags.writeable
            assert copy.strides == np.array(array).strides


def test_tensors_are_aligned_as_on_a_gpu():
    torch = pytest.importorskip("torch")
    tensors = [
        torch.arange(7.0),
        torch.arange(12, dtype=torch.bfloat16).reshape(3, 4).T,
        torch.zeros(0, 3),
        torch.arange(10)[::3],
        torch.tensor(2 + 1j),
        torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last),
    ]
    with testing.use_driver("emulator"):
        for tensor in tensors:
            copy = testing.to_driver(tensor)
            assert copy.numel() == 0 or copy.data_ptr() % 256 == 0
            assert torch.equal(copy, tensor)
            assert copy.stride() == tensor.clone().stride()
    message = r"array must not be a tensor, .*: pass tensor\.numpy"
    with testing.use_driver("emulator", strict=True), pytest.raises(TypeError, match=message):
        testing.to_driver(tensors[0])


# ---- seeds

# Two warps each write their number: the last one wins.
LAST = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry last(.param .u64 out) {
.reg .b64 %at; .reg .b32 %t;
ld.param.u64 %at, [out]; mov.u32 %t, %tid.x; shr.u32 %t, %t, 5; st.global.u32 [%at], %t; ret;
}
"""


def test_for_each_seed_names_the_seed_that_fails():
    with testing.use_driver("emulator"):
        kernel, out, seen = cl.load(cl.Image(LAST.encode()))["last"], np.zeros(1, np.int32), []

        def test():
            kernel[1, 64](out)
            seen.append(int(out[0]))
            assert out[0] == 1

        with pytest.raises(AssertionError, match=r"fails with seed=\d+") as caught:
            testing.for_each_seed(test, seeds=20)
        seed = int(re.search(r"seed=(\d+)", str(caught.value))[1])
        assert isinstance(caught.value.__cause__, AssertionError)
        assert seen == [1] * seed + [0]
        with testing.emulator_options(seed=seed):
            kernel[1, 64](out)
        assert out[0] == 0
        testing.for_each_seed(test, seeds=[n for n in range(20) if n < seed])
        kernel[1, 64](out)
        assert out[0] == 1, "the seed is that of the test only"


@pytest.mark.parametrize(
    ("seeds", "kind", "said"),
    [
        (0, ValueError, "seeds must be at least 1 (got 0)"),
        (True, TypeError, "seeds must be an int (got True)"),
        (1.5, TypeError, "seeds must be an int (got 1.5)"),
        ([-1], ValueError, "seeds must be at least 0 (got -1)"),
        (["a"], TypeError, "seeds must be an int (got 'a')"),
    ],
)
def test_seeds_must_be_ints(seeds, kind, said):
    with pytest.raises(kind, match=re.escape(said)):
        testing.for_each_seed(lambda: None, seeds=seeds)
    with pytest.raises(TypeError, match="test must be a function"):
        testing.for_each_seed(3)


SEEDED_TESTS = f"""
import numpy as np
import pytest
import culaunch as cl
from culaunch import testing

PTX = {LAST!r}

@pytest.mark.culaunch_seeds(6)
@pytest.mark.culaunch_drivers("emulator")
def test_last(culaunch_driver):
    out = testing.to_driver(np.zeros(1, np.int32))
    cl.load(cl.Image(PTX.encode()))["last"][1, 64](out)
    assert out[0] == 1

@pytest.mark.culaunch_seeds(2)
def test_number(culaunch_seed):
    assert culaunch_seed in (0, 1)
"""


@pytest.mark.slow
def test_the_plugin_repeats_a_test_over_seeds(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "KERNEL_TESTS", SEEDED_TESTS)
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    said = run_pytest(tmp_path)
    results = dict(
        re.findall(r"test_last\[(?:emulator-)?(seed\d)(?:-emulator)?\] (PASSED|FAILED)", said)
    )
    assert set(results) == {f"seed{i}" for i in range(6)}
    assert set(results.values()) == {"PASSED", "FAILED"}
    assert "test_number[seed1] PASSED" in said
    assert "@pytest.mark.culaunch_seeds(count): repeat a test" in run_pytest(tmp_path, "--markers")


def test_options_hold_for_the_first_launch_of_a_process():
    code = f"""
import numpy as np
import culaunch as cl
from culaunch import testing
with testing.use_driver("emulator"):
    out = np.zeros(1, np.int32)
    with testing.emulator_options(time_limit=9), testing.emulator_options(check_races=True):
        kernel = cl.load(cl.Image({LAST.encode()!r}))["last"]
        try:
            kernel[1, 64](out)
        except cl.DriverError as error:
            print("race: a thread writes" in str(error))
        testing.reset_emulator()
    kernel[1, 64](out)
    print(out[0])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "True\n1\n"
