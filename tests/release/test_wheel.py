"""The wheel that these tests run on, as it is installed: what it has, needs and says of itself."""

import hashlib
import importlib.metadata
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from base64 import b64encode
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools" / "wheels"


def tool(name):
    spec = importlib.util.spec_from_file_location(f"wheels_{name}", TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    path = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


check = tool("check")
sbom = check.sbom
pytestmark = pytest.mark.needs("installed-wheel")
PLATFORM = f"linux_{os.uname().machine}"


@pytest.fixture(scope="module")
def files():
    """The wheel's own files, by name, without those that pip wrote."""
    distribution = importlib.metadata.distribution("culaunch")
    pips = {"INSTALLER", "REQUESTED", "direct_url.json", "RECORD"}
    return {
        name: distribution.locate_file(path).read_bytes()
        for path in distribution.files
        if (name := path.as_posix()).startswith("culaunch")
        and path.name not in pips
        and "__pycache__" not in path.parts
    }


def test_a_wheel_has_less_than_its_bound(files):
    rows = "".join(
        f"{name},sha256={b64encode(hashlib.sha256(content).digest()).decode()},{len(content)}\n"
        for name, content in files.items()
    )
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in {**files, "culaunch-0.1.0.dist-info/RECORD": rows.encode()}.items():
            wheel.writestr(name, content)
    assert len(archive.getvalue()) < check.LARGEST


def test_a_wheel_has_what_the_tree_has_and_nothing_else(files):
    assert check.contents(files) == []


def test_strange_and_missing_files_are_seen(files):
    strange = {**files, "tests/test_x.py": b"", "culaunch/old.orig": b""}
    del strange["culaunch/__init__.py"]
    notice = next(name for name in files if name.endswith("licenses/NOTICE"))
    strange[notice] = b"another"
    assert len(check.contents(strange)) == 4


@pytest.mark.needs("readelf")
def test_the_extension_needs_nothing_newer_than_its_wheels_promise(files):
    """manylinux_2_28: what a newer libc has renamed is known, and anything else is not."""
    assert check.system(check.extension(files), PLATFORM) == []
    for name in check.EMULATED:
        assert check.system(files[name], PLATFORM) == []


@pytest.mark.needs("readelf", "g++")
def test_a_newer_symbol_and_another_library_are_seen(tmp_path):
    source = tmp_path / "newer.cpp"
    needed = tmp_path / "libneeded.so"
    (tmp_path / "versions").write_text("GLIBC_2.77 { future; };\n")
    empty = tmp_path / "needed.cpp"
    empty.write_text('extern "C" void future() {}\n')
    script = f"-Wl,--version-script={tmp_path / 'versions'}"
    gxx = ["g++", "-shared", "-fPIC", "-o"]
    subprocess.run([*gxx, needed, empty, script, "-Wl,-soname,libneeded.so"], check=True)
    source.write_text('extern "C" { void future(); void all() { future(); } }\n')
    library = tmp_path / "newer.so"
    subprocess.run([*gxx, library, source, needed], check=True)
    found = "\n".join(check.system(library.read_bytes(), PLATFORM))
    assert "needs libneeded.so" in found
    assert "needs future of GLIBC_2.77" in found


@pytest.mark.needs("readelf")
def test_an_extension_for_another_machine_is_seen(files):
    other = "aarch64" if PLATFORM.endswith("x86_64") else "x86_64"
    (problem,) = check.system(check.extension(files), f"linux_{other}")
    assert f"not for {other}" in problem


@pytest.mark.needs("readelf")
def test_the_bill_of_materials_is_that_of_the_tree(files):
    assert check.materials(files) == []
    (name,) = (name for name in files if name.endswith("culaunch.cdx.json"))
    bill = json.loads(files[name])
    bill["components"] = [one for one in bill["components"] if one["name"] not in ("xla", "gcc")]
    assert len(check.materials({**files, name: json.dumps(bill).encode()})) == 2


def test_the_bill_names_everything_of_others_that_the_sources_include_or_restate():
    bill = json.loads(sbom.document("13.0", "3.12", "libstdc++", is_static=False))
    names = {one["name"] for one in bill["components"]}
    assert names == {one.name for one in sbom.COMPONENTS} | {
        "cpython",
        "gcc",
        "nvidia-cuda-runtime",
    }
    known = (
        *(prefix for one in sbom.COMPONENTS for prefix in one.includes),
        "cuda.h", "Python.h", "structmember.h", "frameobject.h",
        "culaunch/", "sys/", "windows.h",
    )  # fmt: skip
    restated = {file for one in sbom.COMPONENTS for file in one.files}
    system = {
        "cxxabi.h", "dirent.h", "dlfcn.h", "elf.h", "fcntl.h", "link.h", "math.h", "pthread.h",
        "sched.h", "stddef.h", "stdint.h", "stdlib.h", "string.h", "time.h", "unistd.h",
    }  # fmt: skip
    strangers, found = set(), set()
    for folder in ("csrc", "include", "src"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix not in (".h", ".c", ".cpp", ".cuh"):
                continue
            text = path.read_text()
            for header in re.findall(r"^ *# *include <([^>]+)>", text, re.MULTILINE):
                is_ours = header.startswith(known) or header in system or "." not in header
                if not is_ours or (header.startswith("cuda/") and not header.startswith(known)):
                    strangers.add(header)
            if re.match(r"// (The part of|What of torch)", text):
                found.add(path.relative_to(ROOT).as_posix())
    assert strangers == set()
    assert found == restated
    assert all(file in (ROOT / "NOTICE").read_text() for file in restated)


COPYRIGHTS = {
    "DLPack": ("torch", "torch/include/ATen/dlpack.h"),
    "XLA": ("jaxlib", "jaxlib/include/xla/ffi/api/c_api.h"),
    "PyTorch": ("torch", "torch-*.dist-info/licenses/LICENSE"),
}


@pytest.mark.parametrize("name", COPYRIGHTS)
def test_the_notice_has_what_the_packages_say(name):
    """The copyright of the installed package, with any text between its words."""
    package, file = COPYRIGHTS[name]
    spec = importlib.util.find_spec(package) or pytest.skip(f"needs {package}")
    found = sorted(Path(spec.origin).parents[1].glob(file))
    if not found:
        pytest.skip(f"{package} comes without {file}")
    notice = (ROOT / "NOTICE").read_text()
    ours = re.search(rf"^  {name} \(.*?\n((?:    .*\n)+)", notice, re.MULTILINE)[1]
    head = " ".join(ours.split()).partition(" and the other")[0].partition(". Apache")[0]
    assert words(head) in words(found[0].read_text(errors="replace"))


def words(text):
    return " ".join(re.findall(r"\w+", text)).lower()


def test_a_static_runtime_is_in_the_bill():
    bill = json.loads(sbom.document("13.0", "3.12", "libc++", is_static=True))
    (llvm,) = (one for one in bill["components"] if one["name"] == "llvm")
    assert llvm["scope"] == "required"
    assert llvm["licenses"] == [{"expression": "Apache-2.0 WITH LLVM-exception"}]
    assert llvm["bom-ref"] in bill["dependencies"][0]["dependsOn"]


@pytest.mark.slow
@pytest.mark.needs("numpy")
def test_the_smoke_test_of_the_wheels_passes_here():
    done = subprocess.run(
        [sys.executable, "-W", "error", TOOLS / "smoke.py"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    steps = [line.split()[0] for line in done.stdout.splitlines()]
    assert steps == ["import", "inspect", "launch", "refuse", "function", "embed"]
