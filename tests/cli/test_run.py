"""``culaunch run``: a kernel launched from the shell, with the checks of a launch."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from full_disks import no_file_larger_than

import culaunch as cl
from culaunch.cli import main
from culaunch.cli.run import command

SOURCE = """
extern "C" __global__ void axpy(float* y, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
"""
OTHER = 'extern "C" __global__ void flip(bool* b, double* d, bool on) { b[0] = on; d[0] = 1; }'


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    cl.compile(SOURCE, arch="compute_80").save(folder / "one.ptx")
    cl.compile(SOURCE + OTHER, arch="compute_80").save(folder / "two.ptx")
    return folder


@pytest.fixture
def run(monkeypatch, tmp_path, images):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    monkeypatch.chdir(tmp_path)

    def call(*words, code=0, image="one.ptx", text=None):
        path = "-" if text is not None else str(images / image)
        result = CliRunner().invoke(command, [path, *words], input=text)
        assert result.exit_code == code, result.output
        return result.output

    return call


GRID = ("--grid", "4", "--block", "256")


def test_an_array_that_cannot_be_saved_leaves_the_old_one(run, tmp_path):
    (tmp_path / "out.npy").write_bytes(b"old")
    words = ("axpy", *GRID, "--arg", "out:float32[1000]=ones", "--arg", "x:float32[1000]=ones",
             "--arg", "2.0", "--arg", "n:int32=1000", "--save", "out.npy")  # fmt: skip
    with no_file_larger_than(1000):
        run(*words, code=1)
    assert [one.name for one in tmp_path.iterdir()] == ["out.npy"]
    assert (tmp_path / "out.npy").read_bytes() == b"old"


def test_arrays_are_made_and_saved(run):
    out = run("axpy", *GRID, "--arg", "out:float32[1000]=ones", "--arg", "x:float32[10,100]=arange",
              "--arg", "2.0", "--arg", "n:int32=1000", "--save", "out.npy")  # fmt: skip
    assert out.splitlines() == [
        "out: float32[1000]  1.0 3.0 5.0 7.0 9.0 11.0 ...",
        "x: float32[10,100]  0.0 1.0 2.0 3.0 4.0 5.0 ...",
    ]
    assert (np.load("out.npy") == 1 + 2 * np.arange(1000)).all()


def test_arrays_come_from_files_and_are_compared(run):
    x = np.random.default_rng(0).random(1000).astype("f4")
    np.save("x.npy", x)
    np.save("wanted.npy", 3 * x)
    np.save("other.npy", 3 * x + 1)
    words = (*GRID, "--arg", "y:float32[1000]=zeros", "--arg", "x.npy", "--arg", "3.", "--arg",
             "1000", "--save", "y=result.npy")  # fmt: skip
    assert run(*words, "--expect", "y=wanted.npy").endswith("y matches wanted.npy\n")
    assert (np.load("result.npy") == 3 * x).all()
    assert "y does not match other.npy" in run(*words, "--expect", "y=other.npy", code=1)


def test_a_file_with_one_number_is_that_number(run):
    np.save("n.npy", np.array(4, "i4"))
    np.save("a.npy", np.array(3, "f4"))
    out = run("axpy", *GRID, "--arg", "y:float32[4]=ones", "--arg", "x:float32[4]=arange",
              "--arg", "a.npy", "--arg", "n=n.npy")  # fmt: skip
    assert out.startswith("y: float32[4]  1.0 4.0 7.0 10.0\n")


def test_numbers_of_every_kind(run):
    words = ("flip", "--grid", "1", "--block", "1")
    flags = ("--arg", "b:bool[2]=zeros", "--arg", "d:float64[3]=random", "--arg", "true")
    out = run(*words, *flags, image="two.ptx")
    assert out.startswith("b: bool[2]  True False\nd: float64[3]  1.0 ")
    assert out == run(*words, *flags, "--seed", "0", image="two.ptx")
    assert out != run(*words, *flags, "--seed", "1", image="two.ptx")
    null = run("axpy", *GRID, "--arg", "null", "--arg", "null", "--arg", "1e3", "--arg", "-0x0")
    assert null == ""


def test_an_image_comes_from_standard_input(run, images):
    out = run(*GRID, "--arg", "y:float32[4]=0.5", "--arg", "x:float32[4]=ones", "--arg", "2.",
              "--arg", "4", text=(images / "one.ptx").read_bytes())  # fmt: skip
    assert out.startswith("y: float32[4]  2.5 2.5 2.5 2.5\n")


def test_a_source_is_compiled(run, images, tmp_path):
    (images / "axpy.cu").write_text(SOURCE)
    words = (*GRID, "--arg", "y:float32[4]=0.5", "--arg", "x:float32[4]=ones", "--arg", "2.",
             "--arg", "4")  # fmt: skip
    assert run(*words, image="axpy.cu") == run(*words)
    (images / "wrong.cu").write_text("__global__ void k() { oops; }")
    with pytest.raises(cl.CompileError, match="oops"):
        command.main(
            [str(images / "wrong.cu"), "--grid", "1", "--block", "1"], standalone_mode=False
        )


def test_an_instance_of_a_template_is_compiled(run, images):
    (images / "scale.cu").write_text(
        "template <typename T> __global__ void scale(T* y, T f) { y[threadIdx.x] *= f; }\n"
    )
    out = run("scale<double>", "--grid", "1", "--block", "4", "--arg", "y:float64[4]=arange",
              "--arg", "3.0", image="scale.cu")  # fmt: skip
    assert out == "y: float64[4]  0.0 3.0 6.0 9.0\n"


def test_the_time_is_told(run):
    out = run(*GRID, "--arg", "y:float32[4]=0.5", "--arg", "x:float32[4]=ones", "--arg", "2.",
              "--arg", "4", "--time")  # fmt: skip
    assert "axpy on culaunch emulator" in out
    assert "wall clock of the emulation" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--arg", "y:float32[4]=zeros"), "axpy takes 4 arguments"),
        (("--arg", "1", "--arg", "null", "--arg", "2", "--arg", "1"), "argument 2 of axpy, float"),
        (("--arg", "y:flot32[4]=zeros"), "such as float32 or int64, not 'flot32'"),
        (("--arg", "y:float32[99999999999999]=zeros"), "must be an array that fits into memory"),
        (("--arg", "y:float32[9999999999999999999999]=ones"), "must be an array that fits"),
        (("--arg", "y:float32[4]=nothing"), "arange, random or a number after the ="),
        (("--arg", "n:int8=128"), "a number that fits int8"),
        (("--arg", "y:float32[4]"), "as in out:float32[1000]=zeros"),
        (("--save", "out.npy"), "no --arg is an array named 'out'; there are none"),
        (("--grid", "many"), "must be a number, or up to three, as in 16,16 (got 'many')"),
    ],
)
def test_what_is_wrong_is_said(run, words, message):
    code = 2 if message.startswith(("such", "arange", "a number", "as in", "no --", "must")) else 1
    assert message in run("axpy", *GRID, *words, code=code)


def test_the_kernel_may_be_left_out_where_there_is_one(run):
    assert "the image has 2 kernels; name one of them" in run(*GRID, image="two.ptx", code=2)


def test_a_name_that_was_nearly_right(monkeypatch, capsys, images):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    for words, message in (
        (["run", str(images / "one.ptx"), "axpi", *GRID], "did you mean 'axpy'?"),
        (["insect"], "No such command 'insect'. Did you mean 'inspect'?"),
        (["launch"], "No such command 'launch'. Did you mean 'run'?"),
        (["cuobjdump"], "No such command 'cuobjdump'. Did you mean 'inspect'?"),
        (["version"], "No such command 'version'. Did you mean '--version'?"),
    ):
        with pytest.raises(SystemExit) as leaving:
            main(words)
        assert leaving.value.code in (1, 2)
        assert message in capsys.readouterr().err


def test_reports_are_of_the_emulator_alone(monkeypatch, capsys, images):
    monkeypatch.setattr(cl.driver, "driver_name", lambda: "cuda")
    with pytest.raises(SystemExit) as leaving:
        main(["run", str(images / "one.ptx"), "axpy", *GRID, "--sarif", "found.sarif"])
    assert leaving.value.code == 2
    assert "--sarif needs the reports of the emulator: add --driver" in capsys.readouterr().err


def test_a_launch_is_profiled(run, tmp_path):
    arguments = ("--arg", "y:float32[4]=0.5", "--arg", "x:float32[4]=ones", "--arg", "2.",
                 "--arg", "4")  # fmt: skip
    out = run(*GRID, *arguments, "--profile", "--trace", "trace.json")
    assert "1 launch on culaunch emulator" in out
    assert "grid 4, block 256" in out
    (event,) = [
        one
        for one in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        if one["ph"] == "X"
    ]
    assert (event["name"], event["args"]["grid"]) == ("axpy", [4, 1, 1])
    assert "1 launch on" not in run(*GRID, *arguments)


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("more", [(), ("--time",)])
def test_a_picture_is_drawn(run, tmp_path, more):
    words = (*GRID, "--arg", "y:float32[4]=0.5", "--arg", "x:float32[4]=ones", "--arg", "2.",
             "--arg", "4")  # fmt: skip
    run(*words, *more, "--plot", "picture.svg")
    text = (tmp_path / "picture.svg").read_text()
    assert "<svg" in text
    assert "is not supported" in run(*words, "--plot", "picture.nonsense", code=2)
