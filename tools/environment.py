"""Prepare ``.venv`` with the wheel built from this checkout: the first step of every make target.

Three things are kept apart, each redone only when what it depends on has changed: the virtual
environment, the wheel in ``dist/`` (its sources), and what is installed (the wheel, its extras,
the frameworks that tests use). With nothing to do it takes a few milliseconds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "culaunch.json"
SOURCES = (
    "CMakeLists.txt",
    "LICENSE",
    "NOTICE",
    "README.md",
    "cmake",
    "csrc",
    "include",
    "pyproject.toml",
    "tools/find_cuda_headers.py",
    "tools/wheels/sbom.py",
)
# What tests can use besides the extras. Of torch the CPU build or nothing: those for CUDA, which a
# plain "torch" takes from PyPI, are gigabytes, and so only the local version "+cpu" is asked for.
FRAMEWORKS = {
    "torch": "torch==2.13.0+cpu",
    "triton": "triton==3.6.0",
    "jax": "jax==0.10.2",
    "flatbuffers": "flatbuffers>=24.3",  # for jax.export
    "warp": "warp-lang==1.19.0",
    "liger_kernel": "liger-kernel==0.8.5",
    "fla": "fla-core==0.6.0",
    "ray": "ray>=2.40",
}


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("extras", nargs="+", help="extras of the wheel to install")
    parser.add_argument(
        "--for-tests", action="store_true", help="with torch, and what CULAUNCH_REQUIRE names"
    )
    arguments = parser.parse_args()
    stamp = create_venv()
    wheel = build_wheel(stamp)
    install(stamp, wheel, set(arguments.extras))
    if arguments.for_tests:
        required = set(os.environ.get("CULAUNCH_REQUIRE", "").split(",")) & set(FRAMEWORKS)
        # torch first: others would bring the one for CUDA with them.
        for name in sorted({"torch"} | required, key=list(FRAMEWORKS).index):
            install_framework(stamp, name, required=name in required)


def create_venv() -> dict[str, Any]:
    """Create the environment unless it is there, and return what its stamp remembers."""
    if sys.version_info < (3, 10):  # noqa: UP036  (whoever runs make may have an older one)
        sys.exit(f"culaunch needs Python 3.10 or newer, and {sys.executable} is older")
    version = sys.version.split()[0]
    stamp = json.loads(STAMP.read_text()) if STAMP.exists() and PYTHON.exists() else {}
    if stamp.get("python") != version:
        say(f"creating .venv with Python {version}")
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=False)
        if made.returncode != 0:
            sys.exit("python3 -m venv failed: see above (Debian has it in python3-venv)")
        stamp = {"python": version}
        save(stamp)
    return stamp


def build_wheel(stamp: dict[str, Any]) -> Path:
    """Build the wheel unless its sources are those of the wheel in ``dist/``."""
    digest = digest_of(*SOURCES, "src")
    wheel = ROOT / "dist" / str(stamp.get("wheel"))
    if stamp.get("sources") == digest and wheel.is_file():
        return wheel
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
    if compiler is None:
        sys.exit("building culaunch needs a C++17 compiler (g++ or clang++) on PATH")
    tools = build_requirements()
    # Without build isolation, so that a second build only compiles what has changed.
    if stamp.get("build") != tools:
        say(f"installing the build tools: {', '.join(tools)}")
        pip("install", *tools)
    say("building the wheel")
    staging = ROOT / "dist" / "staging"
    shutil.rmtree(staging, ignore_errors=True)
    incremental = f"build-dir={ROOT}/build/{{wheel_tag}}"
    options = ("--no-deps", "--no-build-isolation", "-C", incremental, "--wheel-dir", staging)
    if not build_with_progress("wheel", "-v", *options, ROOT):
        sys.exit("the wheel could not be built: see above")
    (built,) = staging.glob("culaunch-*.whl")
    wheel = built.replace(ROOT / "dist" / built.name)
    staging.rmdir()
    save(stamp, sources=digest, wheel=wheel.name, build=tools, installed=None)
    return wheel


def install(stamp: dict[str, Any], wheel: Path, extras: set[str]) -> None:
    """Install the wheel, and the extras that this environment does not have yet."""
    declared = digest_of("pyproject.toml")
    present = set(stamp.get("extras", ())) if stamp.get("declared") == declared else set()
    if stamp.get("installed") != stamp["sources"]:
        say(f"installing {wheel.name}")
        pip("install", "--no-deps", "--force-reinstall", "--no-index", wheel)
        save(stamp, installed=stamp["sources"])
    if not extras <= present:
        extras |= present
        say(f"installing the extras {', '.join(sorted(extras))}")
        pip("install", f"{wheel}[{','.join(sorted(extras))}]")
        save(stamp, declared=declared, extras=sorted(extras))


def install_framework(stamp: dict[str, Any], name: str, *, required: bool) -> None:
    """Install a framework that some tests use, unless pip has none and it is not required."""
    requirement = FRAMEWORKS[name]
    known = dict(stamp.get("frameworks", {}))
    if known.get(name) == requirement or (known.get(name) == "none" and not required):
        return
    say(f"installing {requirement}")
    if try_pip("install", requirement):
        save(stamp, frameworks={**known, name: requirement})
        return
    if required:
        sys.exit(f"CULAUNCH_REQUIRE names {name}, and pip could not install {requirement}")
    say(f"pip has no {requirement}: tests that need {name} will be skipped")
    save(stamp, frameworks={**known, name: "none"})


# ---- helpers


def build_requirements() -> list[str]:
    """Read pyproject.toml's build requirements; add pip's own, and the tools that PATH lacks."""
    text = (ROOT / "pyproject.toml").read_text()
    declared = re.search(r"^requires = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    if declared is None:
        sys.exit("pyproject.toml has no build-system.requires")
    missing = [tool for tool in ("cmake", "ninja") if shutil.which(tool) is None]
    # Python 3.10 and 3.11 can bring an older pip, which has no -C.
    return ["pip>=23.1", *re.findall(r'"([^"]+)"', declared[1]), *missing]


def digest_of(*names: str) -> str:
    """Digest the names and contents of the files under ``names``."""
    digest = hashlib.sha256()
    for name in names:
        start = ROOT / name
        for path in sorted(start.rglob("*")) if start.is_dir() else [start]:
            if path.is_file() and path.suffix not in (".pyc", ".so"):
                content = path.read_bytes()
                digest.update(f"{path.relative_to(ROOT)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def save(stamp: dict[str, Any], **values: object) -> None:
    """Remember what has been done, at once: an interrupted run goes on from there."""
    stamp.update(values)
    STAMP.write_text(json.dumps(stamp, indent=1) + "\n")


def pip(*arguments: str | Path) -> None:
    """Run the environment's pip; leave when it fails."""
    if not try_pip(*arguments):
        sys.exit(f"pip {' '.join(map(str, arguments))} failed: see above")


def try_pip(*arguments: str | Path) -> bool:
    """Run the environment's pip, and say whether it worked."""
    return subprocess.run(pip_command(*arguments), check=False, **pip_settings()).returncode == 0


def build_with_progress(*arguments: str | Path) -> bool:
    """Run the environment's pip, show each tenth of a compilation, and say whether it worked.

    All that pip printed follows a failure.
    """
    lines = []
    shown = 0
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(pip_command(*arguments), **pip_settings(), **pipe) as process:
        for line in process.stdout:
            lines.append(line)
            step = re.match(r"\s*\[(\d+)/(\d+)\] ", line)
            if step and int(step[1]) * 10 // int(step[2]) > shown:
                shown = int(step[1]) * 10 // int(step[2])
                say(f"compiled {step[1]} of {step[2]} files")
    if process.returncode != 0:
        print("".join(lines), flush=True)
    return process.returncode == 0


def pip_command(*arguments: str | Path) -> tuple[str | Path, ...]:
    """Return the command line of the environment's pip."""
    return (PYTHON, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments)


def pip_settings() -> dict[str, Any]:
    """Return where pip runs, with the environment's programs first on PATH."""
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {"env": {**os.environ, "PATH": path}, "cwd": ROOT}


def say(text: str) -> None:
    """Show progress."""
    print(f"==> {text}", flush=True)


if __name__ == "__main__":
    main()
