"""Every public name has an example in its docstring, and the examples run.

They start from the block of docs/api/index.md.
"""

import doctest
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import culaunch as cl

ROOT = Path(__file__).parents[2]
MODULES = {name: getattr(cl, name) for name in cl.__all__ if inspect.ismodule(getattr(cl, name))}


def has_examples(value):
    """Tell whether a public value must have an example: errors and numbers need none."""
    return not (
        isinstance(value, float) or (isinstance(value, type) and issubclass(value, BaseException))
    )


NAMES = [name for name in cl.__all__ if name not in MODULES and has_examples(getattr(cl, name))] + [
    f"{module}.{name}"
    for module, values in MODULES.items()
    for name in values.__all__
    if has_examples(getattr(values, name))
]
NEEDS = {
    **dict.fromkeys(["cpp.build", "cpp.build_inline", "cpp.load_inline", "cpp.stubs"], "tvm_ffi"),
    "ship.export": "tvm_ffi",
    **dict.fromkeys(["frameworks.JaxOperator", "frameworks.jax_op"], "jax"),
    **dict.fromkeys(["frameworks.TorchOperator", "frameworks.torch_op"], "torch"),
    "cache.RemoteCache": "fsspec",
    **dict.fromkeys([name for name in NAMES if name.startswith("triton.")], "triton"),
    "testing.c_driver": "g++",
}


def example_of(name):
    """Return the text below "Examples" in a docstring."""
    module, _, own = name.rpartition(".")
    return inspect.getdoc(getattr(MODULES.get(module, cl), own)).partition(
        "\nExamples\n--------\n"
    )[2]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example(name):
    assert doctest.DocTestParser().get_examples(example_of(name)), f"{name} has no Examples section"


@pytest.mark.slow
@pytest.mark.needs("nvrtc")
@pytest.mark.parametrize("need", ["", *sorted(set(NEEDS.values()))])
def test_examples_run(request, need, has, tmp_path, unoptimized):
    if need and not has(need):
        pytest.skip(f"needs {need}")
    names = [name for name in NAMES if NEEDS.get(name, "") == need]
    page = (ROOT / "docs" / "api" / "index.md").read_text()
    start = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    page = (ROOT / "docs" / "api" / "triton.md").read_text()
    kernels = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    (tmp_path / "kernels.py").write_text(kernels)
    program = f"""\
import doctest
import os
import sys
import types

import culaunch as cl

sys.path.insert(0, os.getcwd())
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
failed = 0
for name, text in {[(name, example_of(name)) for name in names]!r}:
    os.mkdir(name)
    os.chdir(name)
    # A driver that an example selects is not the next one's.
    os.environ["CULAUNCH_DRIVER"] = "emulator"
    module = sys.modules["page"] = types.ModuleType("page")
    exec(compile({start!r}, "index.md", "exec"), vars(module))
    test = doctest.DocTestParser().get_doctest(text, vars(module), name, None, 0)
    failed += doctest.DocTestRunner(optionflags=FLAGS).run(test).failed
    os.chdir("..")
sys.exit(failed > 0)
"""
    words = ["-c", program]
    where = {"cwd": tmp_path, "env": {**os.environ, **unoptimized}, "timeout": 600}
    if need in ("torch", "triton", "tvm_ffi") and has("torch"):
        done = request.getfixturevalue("run_after_torch")(words, **where)
    else:
        done = subprocess.run(
            [sys.executable, *words], check=False, capture_output=True, text=True, **where
        )
    assert done.returncode == 0, done.stdout + done.stderr
