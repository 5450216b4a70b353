"""Play a newcomer's first ten minutes: what each set of extras can do, and what it says it cannot.

``python tools/first_ten_minutes.py`` makes an empty environment for each set of extras, out of what
is installed here: without a network, in seconds. ``--pip WHEEL`` installs the wheel with pip, as a
newcomer does. No GPU is seen in either. Prints each step; the exit code is the number that failed.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
import venv
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
# Folders that several packages share.
SHARED = {"cuda", "nvidia"}
PTX = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry set(.param .u64 to) {
.reg .b64 %to; ld.param.u64 %to, [to]; st.global.u32 [%to], 7; ret;
}
"""
SNIPPET = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


@dataclass(frozen=True)
class Step:
    """A command, and the expected result: a pattern, the exit code, and the chosen driver."""

    typed: str
    seen: str = ""
    code: int = 0
    driver: str = ""


def python(program: str) -> str:
    """Return the command that runs a program."""
    return f"python -W error -c {shlex.quote(textwrap.dedent(program).strip())}"


INSPECT = f"import culaunch as cl; print(cl.inspect({PTX.encode()!r}))"
LOAD = f"import culaunch as cl; module = cl.load({PTX.encode()!r}); print(len(module), 'kernel')"
LAUNCH = f"""
import numpy as np, culaunch as cl
x = np.zeros(1, np.int32)
cl.load({PTX.encode()!r})["set"][1, 1](x)
print("it is", x[0])
"""
PLOT = """
from culaunch.profile import Timing
times = Timing("k", "device", (1e-6, 2e-6, 3e-6))
print(times.plot().get_xlabel())
"""
COMPILE = "import culaunch as cl; print(cl.compile('__global__ void k() {}', arch='sm_90'))"
assert SNIPPET is not None
TYPED_AS_IT_IS = SNIPPET[1] + "\nprint('as the README says')"

# A toolkit in the usual place has a compiler, too.
HAS_TOOLKIT = any(Path("/usr/local/cuda/lib64").glob("libnvrtc.so.1[23]"))
NO_COMPILER = (r"pip install 'culaunch\[compile\]'", 1)

STAGES: dict[str, tuple[Step, ...]] = {
    "": (
        Step(python("import culaunch as cl; print(cl.__version__, *dir(cl))"), "triton"),
        Step(python(INSPECT), "set"),
        Step(python(LOAD), "CULAUNCH_DRIVER=emulator", 1),
        Step(python(LOAD), r"pip install 'culaunch\[emulator\]'", 1, "emulator"),
        Step(python(LOAD), "did you mean 'emulator'", 1, "emulater"),
        Step(python(COMPILE), *(("sm_90",) if HAS_TOOLKIT else NO_COMPILER)),
        Step(python(PLOT), r"pip install matplotlib", 1),
        Step(python("import culaunch as cl; cl.Kernle"), "did you mean 'Kernel'", 1),
        Step("culaunch --help", r"pip install 'culaunch\[cli\]'", 2),
        Step("culaunch doctor", r"emulator +missing .*pip install numpy"),
        Step("culaunch inspect x", r"pip install 'culaunch\[cli\]'", 2),
    ),
    "inspect": (Step(python(INSPECT), "set"),),
    "emulator": (
        Step(python(LAUNCH), "it is 7", driver="emulator"),
        Step(python(LAUNCH), "CULAUNCH_DRIVER=emulator", 1),
        Step(
            python(TYPED_AS_IT_IS),
            *(("as the README says", 0) if HAS_TOOLKIT else NO_COMPILER),
            "emulator",
        ),
    ),
    "cli": (
        Step("culaunch --help", "doctor"),
        Step("culaunch inspct x", "Did you mean 'inspect'", 2),
        Step("culaunch doctor", "missing"),
        Step("culaunch demo", r"pip install", 1),
    ),
    "compile": (
        Step(python(COMPILE), "sm_90"),
        Step(python(TYPED_AS_IT_IS), r"numpy", 1, "emulator"),
    ),
    "compile,emulator": (
        Step(python(TYPED_AS_IT_IS), "as the README says", driver="emulator"),
        Step(python(TYPED_AS_IT_IS), "CULAUNCH_DRIVER=emulator", 1),
    ),
    "cli,compile,emulator": (
        Step("culaunch demo", "Everything worked", driver="emulator"),
        Step("culaunch demo", "emulat"),
        Step("culaunch doctor", "NVRTC"),
    ),
    "plot": (Step(python(PLOT), r"\w"),),
    "remote": (
        Step(
            python(
                "import os; from culaunch.cache import RemoteCache; "
                "print(RemoteCache('file://' + os.getcwd()).url)"
            ),
            "file://",
        ),
    ),
    "embed": (
        Step(
            python("import culaunch as cl; cl.cpp.load_inline('one', 'int one() { return 1; }', "
                   "functions='one'); print('built')"),
            "built",
        ),
    ),
}  # fmt: skip

# Messages that appear only on a machine without NVIDIA's driver.
ASKS_FOR_NO_DRIVER = ("CULAUNCH_DRIVER=emulator", "emulat")


def main() -> int:
    """Play every stage, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pip", metavar="WHEEL", help="install this wheel with pip")
    parser.add_argument("stages", nargs="*", help="extras, such as cli,compile; none: all")
    arguments = parser.parse_args()
    failed = 0
    for extras in arguments.stages or STAGES:
        with tempfile.TemporaryDirectory(prefix="culaunch-newcomer-") as folder:
            start = time.monotonic()
            home = Path(folder)
            make_environment(home / "venv", extras, arguments.pip)
            print(f"[{extras}] made in {time.monotonic() - start:.1f} s", flush=True)
            for step in STAGES[extras]:
                if not (step.seen in ASKS_FOR_NO_DRIVER and has_driver()):
                    failed += not play(step, home)
    print(f"{failed} failed" if failed else "all of it was as it should be")
    return failed


def make_environment(path: Path, extras: str, wheel: str | None) -> None:
    """Make an environment that has culaunch, those extras and nothing else."""
    venv.create(path, with_pip=wheel is not None)
    if wheel is not None:
        name = f"{Path(wheel).resolve()}{f'[{extras}]' if extras else ''}"
        command = (path / "bin" / "python", "-m", "pip", "install", "-q", name)
        subprocess.run(command, check=True)
        return
    (site,) = path.glob("lib/python*/site-packages")
    for name in sorted(closure("culaunch", {extra for extra in extras.split(",") if extra})):
        link(importlib.metadata.distribution(name), site)
    program = path / "bin" / "culaunch"
    program.write_text(
        f"#!{path}/bin/python\nimport sys\nfrom culaunch.cli import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)


def play(step: Step, home: Path) -> bool:
    """Run a step, say how it went, and return whether it was right."""
    kept = {name: os.environ[name] for name in ("LANG", "LD_LIBRARY_PATH") if name in os.environ}
    environment = {
        **kept,
        "PATH": f"{home}/venv/bin:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(home),
        "COLUMNS": "200",
        "CUDA_VISIBLE_DEVICES": "",
        **({"CULAUNCH_DRIVER": step.driver} if step.driver else {}),
    }
    start = time.monotonic()
    done = subprocess.run(
        shlex.split(step.typed), check=False, capture_output=True, text=True, cwd=home,
        env=environment, timeout=300,
    )  # fmt: skip
    said = done.stdout + done.stderr
    is_right = done.returncode == step.code and re.search(step.seen, said) is not None
    shown = " ".join(step.typed.split())
    driver = f"CULAUNCH_DRIVER={step.driver} " if step.driver else ""
    mark = "ok  " if is_right else "FAIL"
    print(f"  {mark} {time.monotonic() - start:4.1f} s  {driver}{shown[:90]}", flush=True)
    if not is_right:
        print(
            textwrap.indent(
                f"code {done.returncode}, wanted {step.code} and {step.seen!r}\n{said}", "      "
            )
        )
    return is_right


def has_driver() -> bool:
    """Whether NVIDIA's driver is here, even if no GPU is seen."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


# ---- an environment out of this one


def closure(name: str, extras: set[str]) -> set[str]:
    """Name the packages that a package and its extras need."""
    found, todo = set[str](), [(name, frozenset(extras))]
    seen = set()
    while todo:
        name, wanted = todo.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        found.add(name)
        for text in importlib.metadata.distribution(name).requires or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": one}) for one in {"", *wanted}):
                todo.append((requirement.name, frozenset(requirement.extras)))
    return found


def link(distribution: importlib.metadata.Distribution, site: Path) -> None:
    """Link a package's files; folders that it shares with others file by file."""
    for file in distribution.files or ():
        if file.parts[0] == "..":
            continue
        at = file if file.parts[0] in SHARED else Path(file.parts[0])
        target = site / at
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(Path(str(distribution.locate_file(at))).absolute())


if __name__ == "__main__":
    sys.exit(main())
