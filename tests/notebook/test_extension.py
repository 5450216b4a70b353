"""``%load_ext culaunch`` in IPython's own shell."""

import pytest

import culaunch as cl

pytest.importorskip("IPython", reason="needs IPython")

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

SCALE = """
namespace my {
template <class T> __global__ void scale(T* y, T a) { y[threadIdx.x] *= a; }
}
extern "C" __global__ void add(float* y, float a) { y[threadIdx.x] += a; }
"""
TWICE = "__global__ void k(float* y) {}\n__global__ void k(int* y) {}"


@pytest.fixture
def shell(monkeypatch, tmp_path):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = InteractiveShell.instance()  # where display() sends what it shows
    shell.history_manager.enabled = False
    shell.run_cell("%load_ext culaunch").raise_error()
    yield shell
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def run(shell, cell):
    with capture_output() as captured:
        result = shell.run_cell(cell)
    return result, captured


def test_kernels_of_a_cell_become_variables(shell):
    run(shell, f"%%cu my::scale<float> --module module\n{SCALE}")[0].raise_error()
    assert isinstance(shell.user_ns["module"], cl.Module)
    y = shell.user_ns["y"] = cl.zeros(4)
    cell = "add[1, 4](y, 2.0)\nscale[1, 4](y, 3.0)\ny.numpy().tolist()"
    assert run(shell, cell)[0].result == [6.0] * 4
    assert y.numpy().tolist() == [6.0] * 4


def test_a_cell_is_profiled(shell):
    run(shell, f"%%cu my::scale<float>\n{SCALE}")[0].raise_error()
    shell.user_ns["y"] = cl.zeros(4)
    result, captured = run(
        shell, "%%culaunch_profile p\nfor _ in range(3):\n  add[1, 4](y, 1.0)\n7"
    )
    assert result.result == 7
    profile = shell.user_ns["p"]
    assert [row.calls for row in profile.kernels] == [3]
    (shown,) = [one for one in captured.outputs if "text/html" in one.data]
    assert "<table>" in shown.data["text/html"]
    result, _ = run(shell, "%%culaunch_profile q\nadd[1, 4](y, 1.0)\n1 / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError)
    assert len(shell.user_ns["q"].launches) == 1


def test_a_profiled_cell_may_have_magics_and_no_launch(shell):
    result, _ = run(shell, "%%culaunch_profile\n%time value = 3")
    result.raise_error()
    assert shell.user_ns["value"] == 3


@pytest.mark.parametrize(
    "cell", ["value = 4", "value = 3\nvalue += 1", "4\nif 1: value = 4", "# no"]
)
def test_a_profiled_cell_without_an_expression_at_its_end_has_no_result(shell, cell):
    shell.user_ns["value"] = 4
    result, _ = run(shell, f"%%culaunch_profile p\n{cell}")
    result.raise_error()
    assert result.result is None
    assert shell.user_ns["value"] == 4
    assert shell.user_ns["p"].launches == ()


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%%cu --arc sm_80\nint x;", "%%cu has no option '--arc'"),
        ("%%cu --arch\nint x;", "--arch of %%cu needs a value"),
        ("%%cu --module 3\nint x;", "must be a name of a Python variable (got '3')"),
        ("%%cu 'a\nint x;", "cannot read"),
        (f"%%cu\n{TWICE}", "cannot be the variable k: give --module NAME"),
        ("%%cu\n__device__ int x;", "the cell has no kernel"),
        ("%%culaunch_profile a b\n1", "takes one variable (got 'a b')"),
        ("%%culaunch_profile 1a\n1", "must be a name of a Python variable"),
    ],
)
def test_a_wrong_use_is_said_in_one_line(shell, cell, message):
    result, _ = run(shell, cell)
    assert type(result.error_in_exec).__name__ == "UsageError"
    assert message in str(result.error_in_exec)


def test_a_compiler_error_is_culaunch_s(shell):
    result, _ = run(shell, "%%cu\n__global__ void k() { nonsense; }")
    assert isinstance(result.error_in_exec, cl.CompileError)
    assert "nonsense" in str(result.error_in_exec)


def test_the_module_binds_where_names_collide(shell):
    run(shell, f"%%cu --module both --option=-lineinfo\n{TWICE}")[0].raise_error()
    assert "k" not in shell.user_ns
    assert len(shell.user_ns["both"].kernels) == 2
