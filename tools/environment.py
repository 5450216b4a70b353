"""Prepare ``.venv`` with the wheel built from this checkout: the first step of every make target.

It makes the virtual environment, the wheel in ``dist/`` (from its sources), and the installed
packages (the wheel, its extras, the frameworks that tests use). It makes each only when its inputs
have changed. With nothing to do it takes a few milliseconds.
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
# Packages that tests can use in addition to the extras. Only the CPU build of torch is asked for,
# by its local version "+cpu": the CUDA builds, which a plain "torch" takes from PyPI, are
# gigabytes.
FRAMEWORKS = {
    "torch": "torch==2.13.0+cpu",
    "triton": "triton==3.6.0",
    "jax": "jax==0.10.2",
    "flatbuffers": "flatbuffers>=24.3",  # for jax.export
    "jax_tvm_ffi": "jax-tvm-ffi>=0.1.3",
    "warp": "warp-lang==1.19.0",
    "liger_kernel": "liger-kernel==0.8.5",
    "fla": "fla-core==0.6.0",
    "ray": "ray>=2.40",
}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("extras", nargs="+", help="extras of the wheel to install")
    parser.add_argument(
        "--for-tests", action="store_true", help="with torch, and what CULAUNCH_REQUIRE names"
    )
    arguments = parser.parse_args()
    environment = Environment(ROOT / ".venv")
    environment.install(environment.build_wheel(), set(arguments.extras))
    if arguments.for_tests:
        required = set(os.environ.get("CULAUNCH_REQUIRE", "").split(",")) & set(FRAMEWORKS)
        # torch first: others would bring the one for CUDA with them.
        for name in sorted({"torch"} | required, key=list(FRAMEWORKS).index):
            environment.install_framework(name, required=name in required)


class Environment:
    """A virtual environment, and the stamp that remembers what has been done to it.

    Parameters
    ----------
    folder : Path
        Created unless it is there.
    interpreter : str
        The Python that it is made with.
    """

    def __init__(self, folder: Path, interpreter: str = sys.executable) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        self._stamp_file = folder / "culaunch.json"
        self.stamp = self._created(interpreter)

    def _created(self, interpreter: str) -> dict[str, Any]:
        version = version_of(interpreter)
        # The Python that runs make may be older.
        if tuple(map(int, version.split(".")[:2])) < (3, 10):
            sys.exit(f"culaunch needs Python 3.10 or newer, and {interpreter} is older")
        if self._stamp_file.exists() and self.python.exists():
            stamp: dict[str, Any] = json.loads(self._stamp_file.read_text())
            if stamp.get("python") == version:
                return stamp
        say(f"creating {self.folder.relative_to(ROOT)} with Python {version}")
        made = subprocess.run([interpreter, "-m", "venv", "--clear", self.folder], check=False)
        if made.returncode != 0:
            sys.exit("python3 -m venv failed: see above (Debian has it in python3-venv)")
        self._stamp_file.write_text(json.dumps({"python": version}) + "\n")
        return {"python": version}

    def build_wheel(self, *options: str) -> Path:
        """Build the wheel unless its sources are those of the wheel in ``dist/``."""
        digest = digest_of(*SOURCES, "src")
        wheel = ROOT / "dist" / str(self.stamp.get("wheel"))
        if self.stamp.get("sources") == digest and wheel.is_file():
            return wheel
        compilers = filter(shutil.which, ("c++", "g++", "clang++"))
        if (os.environ.get("CXX") or next(compilers, None)) is None:
            sys.exit("building culaunch needs a C++17 compiler (g++ or clang++) on PATH")
        tools = build_requirements()
        # Without build isolation, a second build only compiles changed files.
        if self.stamp.get("build") != tools:
            say(f"installing the build tools: {', '.join(tools)}")
            self.pip("install", *tools)
        say("building the wheel")
        staging = ROOT / "dist" / f"staging-{self.folder.name}"
        shutil.rmtree(staging, ignore_errors=True)
        incremental = ("-C", f"build-dir={ROOT}/build/{{wheel_tag}}{'-' if options else ''}")
        place = ("--no-deps", "--no-build-isolation", *incremental, "--wheel-dir", staging)
        if not self._build_with_progress("wheel", "-v", *place, *options, ROOT):
            sys.exit("the wheel could not be built: see above")
        (built,) = staging.glob("culaunch-*.whl")
        wheel = built.replace(ROOT / "dist" / built.name)
        staging.rmdir()
        self._save(sources=digest, wheel=wheel.name, build=tools, installed=None)
        return wheel

    def install(self, wheel: Path, extras: set[str]) -> None:
        """Install the wheel, and the extras that this environment does not have yet."""
        declared = digest_of("pyproject.toml")
        is_same = self.stamp.get("declared") == declared
        present = set(self.stamp.get("extras", ())) if is_same else set()
        contents = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if self.stamp.get("installed") != contents:
            say(f"installing {wheel.name}")
            self.pip("install", "--no-deps", "--force-reinstall", "--no-index", wheel)
            self._save(installed=contents)
        if not extras <= present:
            extras |= present
            say(f"installing the extras {', '.join(sorted(extras))}")
            self.pip("install", f"{wheel}[{','.join(sorted(extras))}]")
            self._save(declared=declared, extras=sorted(extras))

    def install_framework(self, name: str, *, required: bool) -> None:
        """Install a framework that some tests use, unless pip has none and it is not required."""
        requirement = FRAMEWORKS[name]
        known = dict(self.stamp.get("frameworks", {}))
        if known.get(name) == requirement or (known.get(name) == "none" and not required):
            return
        say(f"installing {requirement}")
        if self.try_pip("install", requirement):
            self._save(frameworks={**known, name: requirement})
            return
        if required:
            sys.exit(f"CULAUNCH_REQUIRE names {name}, and pip could not install {requirement}")
        say(f"pip has no {requirement}: tests that need {name} will be skipped")
        self._save(frameworks={**known, name: "none"})

    def pip(self, *arguments: str | Path) -> None:
        """Run the environment's pip; leave when it fails."""
        if not self.try_pip(*arguments):
            sys.exit(f"pip {' '.join(map(str, arguments))} failed: see above")

    def try_pip(self, *arguments: str | Path) -> bool:
        """Run the environment's pip, and say whether it worked."""
        done = subprocess.run(self._pip_command(*arguments), check=False, **self._pip_settings())
        return done.returncode == 0

    def _build_with_progress(self, *arguments: str | Path) -> bool:
        """Run the environment's pip, show each tenth of a compilation, and say whether it worked.

        All that pip printed follows a failure.
        """
        lines = []
        shown = 0
        pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        settings = {**self._pip_settings(), **pipe}
        with subprocess.Popen(self._pip_command(*arguments), **settings) as process:
            for line in process.stdout:
                lines.append(line)
                step = re.match(r"\s*\[(\d+)/(\d+)\] ", line)
                if step and int(step[1]) * 10 // int(step[2]) > shown:
                    shown = int(step[1]) * 10 // int(step[2])
                    say(f"compiled {step[1]} of {step[2]} files")
        if process.returncode != 0:
            print("".join(lines), flush=True)
        return process.returncode == 0

    def _pip_command(self, *arguments: str | Path) -> tuple[str | Path, ...]:
        return (self.python, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments)

    def _pip_settings(self) -> dict[str, Any]:
        # The environment's programs first on PATH.
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {"env": {**os.environ, "PATH": path}, "cwd": ROOT}

    def _save(self, **values: object) -> None:
        """Record each finished step at once: an interrupted run continues there."""
        self.stamp.update(values)
        self._stamp_file.write_text(json.dumps(self.stamp, indent=1) + "\n")


# ---- helpers


def version_of(interpreter: str) -> str:
    """Return the version of a Python, such as ``3.13.0``; "" if it does not run."""
    if interpreter == sys.executable:
        return sys.version.split()[0]
    asked = [interpreter, "-c", "import sys; print(sys.version.split()[0])"]
    try:
        done = subprocess.run(asked, check=False, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


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


def say(text: str) -> None:
    """Show progress."""
    print(f"==> {text}", flush=True)


if __name__ == "__main__":
    main()
