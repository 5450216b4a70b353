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

import culaunch as cl
from culaunch.cli import _group, main

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


@pytest.mark.parametrize("package", ["click", "rich"])
def test_a_missing_extra_names_the_pip_command(package):
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from culaunch.cli import main; main(['--version'])"
    )
    result = run(code=code)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        f"error: the command line needs {package}: python -m pip install 'culaunch[cli]'\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [False, True])
def test_the_doctor_needs_no_extra(as_json):
    words = ["doctor", "--json"] if as_json else ["doctor"]
    code = f"import sys; sys.modules['click'] = None\nfrom culaunch.cli import main; main({words})"
    result = run(code=code)
    assert result.returncode in (0, 1), result.stderr  # 1: something is broken here
    if as_json:
        assert {one["name"] for one in json.loads(result.stdout)["findings"]} >= {"culaunch"}
    else:
        assert result.stdout.startswith("this installation\n")


@pytest.mark.slow
@pytest.mark.needs("installed-wheel")
def test_a_shell_completes_commands_and_options():
    for words, wanted in (("culaunch insp", "inspect"), ("culaunch compile --ar", "--arch")):
        told = {
            "_CULAUNCH_COMPLETE": "bash_complete", "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }  # fmt: skip
        done = subprocess.run(
            ["culaunch"], check=False, capture_output=True, text=True, env=os.environ | told
        )
        assert done.stdout == f"plain,{wanted}\n", done.stderr


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
