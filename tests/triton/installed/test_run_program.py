"""Programs and suites of tests that run natively without an edit."""

import argparse
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from culaunch._triton.program.run import _tell, main

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="needs no-GPU: with one Triton has a driver of its own"
)

FOLDER = Path(__file__).parents[1] / "shared"
ADD = "installed_kernels.add"


@pytest.fixture(autouse=True)
def emulator(on_emulator):
    pass


PROGRAM = """
    import sys, torch
    sys.path.insert(0, {folder!r})
    from installed_kernels import add
    assert __name__ == "__main__"
    x = torch.arange(100.0)
    out = torch.zeros(100)
    add[(2,)](x, x, out, 100, BLOCK=64)
    assert torch.equal(out, 2 * x)
    print(sys.argv[1:])
    if sys.argv[1:] == ["at the end"]:
        import atexit, os
        atexit.register(add[(2,)], x, x, out, 100, BLOCK=64)
        if os.fork() == 0:
            sys.exit()
        os.wait()
        sys.exit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["script", "module"])
def test_a_program_runs_natively_without_an_edit(run_after_torch, tmp_path, how):
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM.format(folder=str(FOLDER))))
    what = ["-m", "program"] if how == "module" else ["program.py"]
    run = ["-m", "culaunch.triton", "--report", "--json", "found.json"]
    done = run_after_torch([*run, *what, "--report", "-x"], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['--report', '-x']\n"
    assert ADD in done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["native"], found["triton"]) == (1, 0)


@pytest.mark.slow
def test_a_program_is_counted_to_its_end(run_after_torch, tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM.format(folder=str(FOLDER))))
    run = ["-m", "culaunch.triton", "--report", "--json", "found.json", "--"]
    done = run_after_torch([*run, "program.py", "at the end"], cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines().count("all                            2          0") == 1
    assert json.loads((tmp_path / "found.json").read_text())["native"] == 2


FACTS = """
    '''What it is for.'''
    import inspect, os, pickle, sys, threading, time
    import helper
    class Kept: ...
    main = sys.modules["__main__"]
    os.chdir("/")
    names = sorted(name for name in globals() if "annot" not in name)
    print(sys.argv, sys.path[:2], __name__, __file__, __doc__, names)
    print(__package__, __spec__ and (__spec__.name, __spec__.origin))
    print(inspect.getsource(Kept), main.__dict__ is globals(), type(__loader__).__name__)
    def late():
        time.sleep(0.2)
        print(type(pickle.loads(pickle.dumps(Kept()))) is Kept, flush=True)
    threading.Thread(target=late).start()
    if sys.argv[1:]:
        raise ValueError(sys.argv)
"""
WAYS = {
    "script": ["sub/program.py"],
    "a script that raises": ["./sub/program.py", "-m", "x"],
    "module": ["-m", "package", "--report"],
    "folder": ["package"],
    "text": ["-c", "import sys; print(sys.argv, sys.path[0], __name__, sorted(globals()))", "-c"],
    "no syntax": ["sub/wrong.py"],
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_program_finds_what_it_finds_by_python_itself(tmp_path, way):
    for name in ("sub", "package"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper.py").touch()
    (tmp_path / "helper.py").touch()
    (tmp_path / "package" / "__init__.py").touch()
    for name in ("sub/program.py", "package/__main__.py"):
        (tmp_path / name).write_text(textwrap.dedent(FACTS))
    (tmp_path / "sub" / "wrong.py").write_text("def\n")
    found = [
        subprocess.run(
            [sys.executable, *how, *WAYS[way]],
            check=False, capture_output=True, text=True, cwd=tmp_path,
        )
        for how in ([], ["-m", "culaunch.triton"])
    ]  # fmt: skip
    own, natively = [(one.returncode, one.stdout, one.stderr) for one in found]
    assert natively == own


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.py"], "the file 'no.py' does not exist"),
        (["--json", "no/found.json", "no.py"], "/no' does not exist"),
        (["--trace", "no/trace.json", "-c", "1"], "/no' does not exist"),
        ([], "give a script"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_pytest_has_an_option(run_after_torch, tmp_path):
    body = textwrap.dedent(PROGRAM.format(folder=str(FOLDER)))
    body = body.replace('assert __name__ == "__main__"', "").replace("print(sys.argv[1:])", "")
    (tmp_path / "test_it.py").write_text("def test_it():\n" + textwrap.indent(body, "    "))
    run = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "culaunch._pytest_plugin"]
    done = run_after_torch([*run, "--culaunch-triton", tmp_path], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Triton kernels by culaunch" in done.stdout
    assert ADD in done.stdout


def test_a_report_that_cannot_be_written_is_a_line_and_no_traceback(capsys):
    options = argparse.Namespace(json=Path("/dev/full"), report=True)
    _tell(options, os.getpid())
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == (
        "python -m culaunch.triton: no report: [Errno 28] No space left on device: '/dev/full'"
    )
    assert rest, "the other one is said all the same"


@pytest.mark.slow
def test_a_program_is_profiled_to_its_end(run_after_torch, tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM.format(folder=str(FOLDER))))
    run = ["-m", "culaunch.triton", "--profile", "--trace", "trace.json"]
    done = run_after_torch([*run, "program.py", "at the end"], cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("2 launches on culaunch emulator") == 1
    assert "grid 2, block 128" in done.stderr
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [one["name"] for one in events if one["ph"] == "X"] == ["add", "add"]
