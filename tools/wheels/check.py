"""Check wheels: their contents, the system requirements of the extension, the bill of materials.

``python tools/wheels/check.py dist/*.whl`` prints what is wrong; the exit code is 1 if anything is.
Needs ``readelf``. auditwheel and twine see other things, and are run beside it.
"""

from __future__ import annotations

import argparse
import email
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sbom

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 2_480_000  # bytes of a wheel
# What manylinux_2_28 promises: glibc of RHEL 8, and the C++ library of its GCC.
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
# Libraries that the tags let an extension need.
LIBRARIES = re.compile(
    r"lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so\.\d+|ld-linux-[\w-]+\.so\.\d|libc\.musl-\w+\.so\.1"
)
# Newer versions of what older systems have as well: the same source needs nothing newer there.
OLDER_HAVE_IT = re.compile(
    r"dl(open|sym|error|close|addr|info)|pthread_\w+"  # libc took them in with 2.34
    r"|[lf]?stat(at)?(64)?"  # functions since 2.33, inline before
    r"|__libc_single_threaded"  # libstdc++ needs it if a header has it
    r"|__isoc23_\w+"  # C's strtol and its like, by the headers of 2.38
    r"|exp2?|log2?|pow|fmod"  # without errno since 2.29 and 2.38
    r"|_ZSt28__throw_bad_array_new_lengthv"  # in the part of libstdc++ that GCC's toolsets link
)
# The driver and the runtime of the emulator, and its hook for NVRTC, for other programs.
EMULATED = [
    f"culaunch/_emulator/libcuda/{one}"
    for one in ("libcuda.so.1", "libcudart.so.13", "libculaunch_nvrtc.so.1")
]
MACHINES = {"x86_64": "X86-64", "aarch64": "AArch64"}


def main() -> int:
    """Check the wheels that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheels", nargs="+", type=Path)
    failed = False
    for wheel in parser.parse_args().wheels:
        with zipfile.ZipFile(wheel) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        found = [*problems(files, wheel.stem.rpartition("-")[2])]
        size = wheel.stat().st_size
        if size >= LARGEST:
            found.append(f"it has {size:,} bytes, and {LARGEST:,} are too many")
        print(f"{wheel.name}: {size / 1e6:.2f} MB, {len(files)} files", *found, sep="\n  ")
        failed |= bool(found)
    return failed


def problems(files: Mapping[str, bytes], platform: str) -> list[str]:
    """List the problems of a wheel of these files for a platform, such as "linux_x86_64"."""
    libraries = [extension(files), *(files[name] for name in EMULATED)]
    needs = [one for library in libraries for one in system(library, platform)]
    return [*contents(files), *needs, *materials(files)]


def contents(files: Mapping[str, bytes]) -> list[str]:
    """List the files that are missing or do not belong, and the errors of the metadata."""
    found = []
    folder = f"culaunch-{sbom.own_version()}.dist-info"
    for name in files:
        if not re.match(rf"culaunch/|{re.escape(folder)}/", name):
            found.append(f"{name} is outside the package")
        if re.search(r"__pycache__|\.(o|a|pyc|orig|cubin|culib)$|\.clang-format", name):
            found.append(f"{name} is not a file of a wheel")
    metadata = email.message_from_bytes(files.get(f"{folder}/METADATA", b""))
    if metadata["License-Expression"] != "Apache-2.0":
        found.append(f"its license is {metadata['License-Expression']}")
    licenses = metadata.get_all("License-File", [])
    found += [
        f"{name} is not that of the tree"
        for name in licenses
        if files.get(f"{folder}/licenses/{name}") != (ROOT / name).read_bytes()
    ]
    found += [f"{name} is not its license file" for name in {"LICENSE", "NOTICE"} - set(licenses)]
    tree = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "culaunch").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.name != ".clang-format"
    }
    tree = {name for name in tree if not name.endswith(".so")}
    tree |= {
        f"culaunch/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "include").rglob("*.h")
    }
    found += [f"{name} is missing" for name in sorted(tree - set(files))]
    return found


def extension(files: Mapping[str, bytes]) -> bytes:
    """Return the extension of a wheel."""
    libraries = sorted(name for name in files if re.search(r"\.so(\.|$)", name))
    if libraries[1:] != EMULATED or not libraries[0].startswith("culaunch/_core."):
        raise SystemExit(
            f"an extension and {EMULATED} were expected, and these are there: {libraries}"
        )
    return files[libraries[0]]


def system(library: bytes, platform: str) -> list[str]:
    """List what an extension needs that the platform does not promise."""
    found = []
    header = readelf(library, "--file-header", "--dynamic")
    machine = next(one for one in MACHINES if platform.endswith(one))
    if not re.search(rf"Machine:.*{MACHINES[machine]}", header):
        found.append(f"the extension is not for {machine}")
    found += [
        f"the extension needs {needed}"
        for needed in re.findall(r"\(NEEDED\).*\[(.+)\]", header)
        if not LIBRARIES.fullmatch(needed)
    ]
    if re.search(r"\((RPATH|RUNPATH)\)", header):
        found.append("the extension has a path of libraries")
    is_local = platform.startswith("linux_")
    for symbol, version in newer_symbols(library):
        if not (is_local and OLDER_HAVE_IT.fullmatch(symbol)):
            found.append(f"the extension needs {symbol} of {version}, newer than manylinux_2_28")
    return found


def newer_symbols(library: bytes) -> list[tuple[str, str]]:
    """List the symbols that a library takes from versions newer than manylinux_2_28's."""
    pattern = r"UND (\S+?)@+(([A-Z]+)_([\d.]+))"
    return [
        (symbol, version)
        for symbol, version, name, number in re.findall(
            pattern, readelf(library, "--dyn-syms", "--wide")
        )
        if name in NEWEST and tuple(map(int, number.split("."))) > NEWEST[name]
    ]


def materials(files: Mapping[str, bytes]) -> list[str]:
    """List where the bill of materials and the wheel do not agree."""
    name = f"culaunch-{sbom.own_version()}.dist-info/sboms/culaunch.cdx.json"
    if name not in files:
        return [f"{name} is missing"]
    bill: dict[str, Any] = json.loads(files[name])
    found = []
    if bill["metadata"]["component"]["version"] != sbom.own_version():
        found.append("the bill of materials is of another version")
    components = {one["name"]: one for one in bill["components"]}
    found += [
        f"the bill of materials lacks {one.name}"
        for one in sbom.COMPONENTS
        if components.get(one.name) != one.record()
    ]
    needed = readelf(extension(files), "--dynamic")
    runtime = next((components[name] for name in ("gcc", "llvm") if name in components), None)
    is_shared = re.search(r"\[libstdc\+\+|\[libc\+\+", needed) is not None
    if runtime is None or (runtime["scope"] == "excluded") != is_shared:
        found.append(f"the bill of materials says {runtime} of the C++ runtime")
    return found


def readelf(library: bytes, *options: str) -> str:
    """Return what readelf says of a library."""
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(library)
        file.flush()
        command = ["readelf", *options, file.name]
        environment = {"LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin"}
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment
        ).stdout


if __name__ == "__main__":
    sys.exit(main())
