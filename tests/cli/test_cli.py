"""The group of commands: what it lists, how it fails, and that it needs only what it says."""

import importlib.machinery
import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import click
import pytest
from terminals import on_a_terminal

import culaunch as cl
from culaunch.cli import _group, _options, main
from culaunch.cli._messages import in_options

COMMANDS = _group.group.list_commands(click.Context(_group.group))


def run(*arguments, python_options=(), code=None):
    command = [sys.executable, *python_options]
    command += ["-c", code] if code else ["-m", "culaunch", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.fixture
def failing(monkeypatch):
    """Make a command ``culaunch fail`` that raises what it is given."""

    def install(error):
        @click.command()
        def command():
            raise error

        module = types.ModuleType("culaunch.cli.fail")
        module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None)
        module.command = command
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(_group, "_COMMANDS", ("fail",))

    return install


def test_version():
    result = run("--version")
    assert (result.returncode, result.stdout) == (0, f"culaunch {cl.__version__}\n")
    assert result.stderr == ""


@pytest.mark.slow
def test_help_lists_every_command_that_there_is_and_no_other():
    listed = COMMANDS
    result = run("--help")
    assert result.returncode == 0
    section = result.stdout.partition("Commands:")[2]
    assert [line.split()[0] for line in section.splitlines() if line.strip()] == listed
    assert "demo" in listed


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    result = run(name, "--help")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"Usage: culaunch {name}")
    command = _group.group.get_command(click.Context(_group.group), name)
    assert command.help, "a command says what it does"
    # In the list of commands, too, its first sentence is whole.
    assert not command.get_short_help_str(60).endswith("...")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts[0]} has no help"


def test_unknown_command_names_itself():
    result = run("lunch")
    assert result.returncode == 2
    assert "No such command 'lunch'" in result.stderr


@pytest.mark.slow
@pytest.mark.needs("installed-wheel")
def test_the_script_and_the_module_are_the_same():
    script = subprocess.run(
        ["culaunch", "--help"], check=True, capture_output=True, text=True
    ).stdout
    assert script == run("--help").stdout


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (cl.ImageError("truncated", source="a", offset=16), "a: truncated (at offset 0x10)"),
        (cl.KernelNotFoundError("no kernel 'x'; there are: y"), "no kernel 'x'; there are: y"),
        (FileNotFoundError(2, "No such file", "a.cu"), "a.cu: No such file"),
        (ValueError("arch must be sm_90 (got [bold]90)"), "arch must be sm_90 (got [bold]90)"),
    ],
)
def test_what_a_user_can_put_right_is_one_line(failing, capsys, error, line):
    failing(error)
    with pytest.raises(SystemExit) as leaving:
        main(["fail"])
    assert leaving.value.code == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"error: {line}\n")


def test_a_defect_keeps_its_traceback(failing):
    failing(cl.InternalError("lost a kernel"))
    with pytest.raises(cl.InternalError, match="lost a kernel"):
        main(["fail"])


def test_an_interrupt_is_said_and_has_the_usual_code(failing, capsys):
    failing(KeyboardInterrupt())
    with pytest.raises(SystemExit) as leaving:
        main(["fail"])
    assert leaving.value.code == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_missing_extra_names_the_pip_command():
    code = (
        "import sys; sys.modules['click'] = None\n"
        "from culaunch.cli import main; main(['--version'])"
    )
    result = run(code=code)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "error: the command line needs click: python -m pip install 'culaunch[cli]'\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
def test_the_doctor_needs_no_extra(run_after_torch, as_json):
    words = ["doctor", "--json"] if as_json else ["doctor"]
    code = f"import sys; sys.modules['click'] = None\nfrom culaunch.cli import main; main({words})"
    result = run_after_torch(["-c", code])
    assert result.returncode in (0, 1), result.stderr  # 1: something is broken here
    if as_json:
        assert {one["name"] for one in json.loads(result.stdout)["components"]} >= {"culaunch"}
    else:
        assert result.stdout.startswith("this installation\n")


@pytest.mark.parametrize("extra", [True, False])
def test_a_reader_that_leaves_is_no_error(run_after_torch, extra):
    """As `culaunch doctor | head -1` does; the report is longer than a pipe that nobody reads."""
    code = "import os, sys\nreading, writing = os.pipe()\n"
    code += "os.close(reading), os.dup2(writing, sys.stdout.fileno())\n"
    code += "" if extra else "sys.modules['click'] = None\n"
    code += "from culaunch.cli import main; main(['doctor'])"
    done = run_after_torch(["-c", code])
    assert (done.returncode, done.stderr) == (1, "")


def test_a_wrong_command_line_has_the_same_spelling():
    done = run("compile", "x.cu")
    assert done.returncode == 2
    assert done.stderr == (
        "Usage: culaunch compile [OPTIONS] SOURCE\n"
        "Try 'culaunch compile --help' for help.\n\n"
        "error: Missing option '-o' / '--output'.\n"
    )


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("arch must be sm_90 (got '90')", "--arch must be sm_90 (got '90')"),
        ("arch '90' is unknown", "--arch '90' is unknown"),
        ("cannot open arch 90", "cannot open arch 90"),
        (
            "include <x>, or compile with backend='nvcc'",
            "include <x>, or compile with --backend nvcc",
        ),
        ("name one, as in arch='sm_90'", "name one, as in --arch sm_90"),
        ("pass its directory in include_dirs=", "pass its directory in --include"),
        ("pass relocatable=True", "pass --relocatable"),
        ("or cache=False", "or --no-cache"),
        ("names must contain only str", "--name must contain only str"),
        ("-arch=sm_90 and --std=c++17 are nvcc's", "-arch=sm_90 and --std=c++17 are nvcc's"),
        ("int arch = 4; arch==3", "int arch = 4; arch==3"),
    ],
)
def test_an_error_names_options(said, shown):
    command = _group.group.get_command(click.Context(_group.group), "compile")
    assert in_options(said, command) == shown


@pytest.mark.slow
def test_an_error_of_the_api_is_in_the_command_line_s_words(tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void k() {}")
    done = run(
        "compile", str(tmp_path / "k.cu"), "-o", str(tmp_path / "k.cubin"), "--maxrregcount", "0"
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: --maxrregcount must be in 1 to 255 (got 0)\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "colored"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)],
)
def test_colors_are_for_terminals_that_want_them(tmp_path, variables, colored):
    ptx = tmp_path / "k.ptx"
    ptx.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n")
    shown = on_a_terminal("inspect", str(ptx), str(tmp_path / "missing.ptx"), **variables)
    assert "compute_80" in shown
    assert "error:" in shown
    assert ("\x1b[1m" in shown) is colored
    assert ("\x1b[" in shown) is colored


def completed(words):
    """Return what bash is told to complete the last word to."""
    told = {
        "_CULAUNCH_COMPLETE": "bash_complete", "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }  # fmt: skip
    done = subprocess.run(
        ["culaunch"], check=False, capture_output=True, text=True, env=os.environ | told
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.needs("installed-wheel")
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("insp", ["plain,inspect"]),
        ("compile --ar", ["plain,--arch"]),
        ("compile k.cu --arch sm_9", ["plain,sm_90", "plain,sm_90a"]),
        ("compile k.cu --arch sm_80,sm_9", ["plain,sm_80,sm_90", "plain,sm_80,sm_90a"]),
        ("link a.o --arch compute_10", [f"plain,compute_10{end}" for end in
                                        ("0", "0a", "0f", "3", "3a", "3f", "7", "7a", "7f")]),
        ("run k", ["file,k"]),
        ("compile k", ["file,k"]),
        ("fatbin k", ["file,k"]),
        ("run --driver emu", ["plain,emulator"]),
        ("run --driver ./lib", ["file,./lib"]),
        ("run missing.ptx k", [""]),
    ],
)  # fmt: skip
def test_a_shell_completes(words, wanted):
    assert completed(f"culaunch {words}") == wanted


@pytest.mark.slow
@pytest.mark.needs("installed-wheel")
def test_a_shell_completes_the_kernels_of_an_image(tmp_path):
    ptx = tmp_path / "k.ptx"
    ptx.write_text(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry alone() { ret; }\n"
        ".visible .entry _Z5scaleIfEvPT_PKS0_S0_i() { ret; }\n"
    )
    assert completed(f"culaunch run {ptx} ") == ["plain,alone", "plain,scale<float>"]
    assert completed(f"culaunch tune {ptx} al") == ["plain,alone"]


@pytest.mark.needs("nvrtc")
def test_every_architecture_is_completed():
    with pytest.raises(ValueError, match="which supports sm_") as caught:
        cl.compile("__global__ void k() {}", arch="sm_99")
    supported = re.findall(r"sm_(\w+)", str(caught.value).split("supports")[1])
    assert len(supported) > 5
    assert {int(number) for number in supported} <= set(_options.NUMBERS)


def test_the_driver_is_an_option(run_after_torch):
    """It is where $CULAUNCH_DRIVER is, for this process and those that it starts."""
    done = run_after_torch(["-m", "culaunch", "doctor", "--driver", "emulator", "--json"])
    components = {one["name"]: one["detail"] for one in json.loads(done.stdout)["components"]}
    assert "CULAUNCH_DRIVER=emulator" in components["environment"]
    wrong = run("run", "x.ptx", "--grid", "1", "--block", "1", "--driver", "cpu")
    assert wrong.returncode == 2
    assert wrong.stderr.endswith(
        "error: Invalid value for '--driver': the driver must be 'cuda', 'emulator' or the path of "
        "a library that exports the CUDA driver API (got 'cpu'): did you mean 'emulator'?\n"
    )


def test_a_file_that_imports_what_is_missing(tmp_path):
    (tmp_path / "model.py").write_text("import no_such_framework.language as tl\n")
    done = run("triton", f"{tmp_path}/model.py:k", "--signature", "i32", "--arch", "sm_80",
               "-o", str(tmp_path / "k.culib"))  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: {tmp_path}/model.py imports no_such_framework, which {sys.executable} does not "
        "have\n"
    )
    code = (
        "import sys; sys.modules['triton'] = None\n"
        "from culaunch.cli import main; main(sys.argv[1:])"
    )
    (tmp_path / "model.py").write_text("import triton\n")
    done = subprocess.run(
        [sys.executable, "-c", code, "triton", f"{tmp_path}/model.py:k", "--signature", "i32",
         "--arch", "sm_80", "-o", str(tmp_path / "k.culib")],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.endswith("does not have: python -m pip install triton\n")


def test_a_file_that_fails_shows_its_own_lines(tmp_path):
    (tmp_path / "model.py").write_text("def f():\n    1 / 0\nf()\n")
    done = run("triton", f"{tmp_path}/model.py:k", "--signature", "i32", "--arch", "sm_80",
               "-o", str(tmp_path / "k.culib"))  # fmt: skip
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert f'"{tmp_path}/model.py", line 3' in lines[1]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "culaunch/cli" not in done.stderr


@pytest.mark.slow
def test_help_imports_no_framework_and_no_compiler():
    code = (
        "import sys\nfrom culaunch.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'torch', 'cuda', 'tvm_ffi', 'triton'} & set(sys.modules)))"
    )
    result = run(code=code)
    assert result.stdout.splitlines()[-1] == "[]", result.stderr


def test_the_page_of_the_commands_lists_them_all():
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    assert sorted(re.findall(r"^\| `culaunch (\w+)` \|", page, re.MULTILINE)) == sorted(COMMANDS)
