"""The C++ header: its tests under sanitizers, its warnings, and what it shows of itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import culaunch as cl

HERE = Path(__file__).parent
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
SANITIZERS = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry {name}()
{{ ret; }}
"""


PROGRAMS = (
    "arguments", "module", "kernel", "launch_attributes", "devices", "errors", "calls",
    "explicit_graph", "graph_policy", "lifetimes",
)  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_under_sanitizers(build_thin, gxx, run_cpp, name):
    program = build_thin(gxx, name, *WARNINGS, *SANITIZERS, HERE / f"test_{name}.cpp")
    assert run_cpp(program) == ""


# The messages of one have types as g++ spells them.
@pytest.mark.parametrize(("name", "compiler"), [("kernel", "gxx"), ("lifetimes", "sanitizing")])
def test_header_only_under_sanitizers(request, build, sanitizing, run_cpp, name, compiler):
    program = request.getfixturevalue(sanitizing if compiler == "sanitizing" else compiler)
    program = build(program, name, *WARNINGS, *SANITIZERS, HERE / f"test_{name}.cpp")
    assert run_cpp(program) == ""


def test_files_of_both_ways_are_one_program(build, build_thin, gxx, run_cpp, tmp_path):
    """A file that compiles all that it uses has the driver of the others, and their modules."""
    (tmp_path / "part.cpp").write_text(
        "#include <culaunch/culaunch.h>\n"
        "CULAUNCH_EMBED_CUBIN(shared);\n"
        "void* PART() { return &CULAUNCH_GET_MODULE(shared); }\n"
        "void* PART_DRIVER() { return &culaunch::Driver::Get(); }\n"
    )
    (tmp_path / "main.cpp").write_text(
        "void* ThinModule(); void* FullModule(); void* ThinDriver(); void* FullDriver();\n"
        "int main() { return ThinModule() != FullModule() || ThinDriver() != FullDriver(); }\n"
    )
    cl.cpp.embed(PTX.format(name="of_both").encode(), tmp_path / "shared.o", "shared")
    for level in ("-O0", "-O2"):
        names = ("-DPART=FullModule", "-DPART_DRIVER=FullDriver", tmp_path / "part.cpp")
        full = build(gxx, "full.o", level, "-c", *names)
        names = ("-DPART=ThinModule", "-DPART_DRIVER=ThinDriver", tmp_path / "part.cpp")
        thin = build(gxx, "thin.o", level, "-c", "-DCULAUNCH_HEADER_ONLY=0", *names)
        for parts in ((full, thin), (thin, full)):
            program = build_thin(gxx, "both", level, tmp_path / "main.cpp", *parts,
                                 tmp_path / "shared.o")  # fmt: skip
            assert run_cpp(program) == ""


@pytest.mark.parametrize("devices", ["1", "2"])
def test_a_launch_is_one_call_of_the_driver(build_thin, gxx, run_cpp, monkeypatch, devices):
    monkeypatch.setenv("FAKE_DRIVER_DEVICES", devices)
    flags = (*WARNINGS, *SANITIZERS)
    program = build_thin(gxx, "driver_calls", *flags, HERE / "test_driver_calls.cpp")
    assert run_cpp(program) == ""


def test_each_file_has_the_default_stream_that_its_own_driver_calls_have(build, gxx, run_cpp):
    source = HERE / "test_default_stream.cpp"
    programs = [build(gxx, "legacy", source)]
    programs.append(build(gxx, "per_thread", "-DCUDA_API_PER_THREAD_DEFAULT_STREAM", source))
    for program in programs:
        assert run_cpp(program) == ""


NO_ARGUMENTS = """
#include <culaunch/culaunch.h>
#include <memory>
#include <string>
#include <vector>
struct Framework { struct Tensor { std::shared_ptr<int> p; void* data_ptr() const; }; };
struct View { void* p; void* data_ptr() const; };
struct Plain { float x[3]; };
void Refused(culaunch::Kernel k, Framework::Tensor tensor, View view) {
  std::vector<float> vector;
  std::string text;
  std::unique_ptr<float> owner;
  float array[2] = {};
  k({1, 1}, tensor);
  k({1, 1}, view);
  k({1, 1}, vector);
  k({1, 1}, text);
  k({1, 1}, owner);
  k({1, 1}, array);
}
void Allowed(culaunch::Kernel k) {
  enum { kEnumerator };
  k({1, 1}, Plain{}, nullptr, true, kEnumerator, 1.0f, static_cast<float*>(nullptr), CUdeviceptr{});
}
"""


@pytest.mark.parametrize("compiler", ["gxx", "clang"])
def test_what_is_no_argument_does_not_compile_and_says_what_is(
    request, tmp_path, cuda_headers, compiler
):
    source = tmp_path / "arguments.cpp"
    command = [request.getfixturevalue(compiler), "-std=c++17", "-fsyntax-only"]
    command += [f"-I{cl.cpp.include_dir()}", "-isystem", cuda_headers, str(source)]
    source.write_text(NO_ARGUMENTS)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    said = done.stderr
    errors = re.findall(r"error: .*(?:an? (tensor|array|argument)) (.*)", said)
    assert len(errors) == 6, said
    assert (
        sum("culaunch::ffi::Data(tensor) or tensor.data_ptr()" in text for _, text in errors) >= 5
    )
    for refused in ("Framework::Tensor", "View", "vector", "string", "unique_ptr", r"float ?\[2\]"):
        assert re.search(rf"(?:Type = |RequireArgument<).*{refused}", said), refused
    assert "Allowed" not in said
    source.write_text(re.sub(r"  k\(\{1, 1\}, \w+\);\n", "", NO_ARGUMENTS))
    subprocess.run(command, check=True)


def test_embedded_images(build, build_thin, gxx, run_cpp, tmp_path):
    objects = []
    flags = (*WARNINGS, *SANITIZERS)
    for name, kernels in (
        ("test_embed", ("scale", "empty", "third")),
        ("test_embed_second", ("of_second",)),
    ):
        words = ("-c", "-DCULAUNCH_HEADER_ONLY=0", *flags, HERE / f"{name}.cpp")
        compiled = build(gxx, f"{name}.o", *words)
        first, *others = (PTX.format(name=kernel) for kernel in kernels)
        image = first + "".join(text.split("64\n", 1)[1] for text in others)
        cl.cpp.embed(image.encode(), tmp_path / f"{name}.o", "kernels", merge_with=compiled)
        objects.append(tmp_path / f"{name}.o")
    cl.cpp.embed(PTX.format(name="of_both").encode(), tmp_path / "shared.o", "shared")
    program = build_thin(gxx, "embed", *flags, *objects, tmp_path / "shared.o")
    assert run_cpp(program) == ""


@pytest.mark.parametrize("standard", ["c++17", "c++20", "c++2b"])
@pytest.mark.parametrize("compiler", ["gxx", "clang"])
def test_there_are_no_warnings(request, build, tmp_path, compiler, standard):
    (tmp_path / "all.cpp").write_text(
        "#include <culaunch/culaunch.h>\n"
        "#include <culaunch/jit.h>\n"
        "CULAUNCH_EMBED_CUBIN(unused);\n"
        "CULAUNCH_EMBED_CUBIN(used);\n"
        'void Use() { CULAUNCH_GET_KERNEL(used, "k")({1, 1}, 1, 2.0f); }\n'
    )
    program = request.getfixturevalue(compiler)
    flags = (*WARNINGS, "-Wuseless-cast") if compiler == "gxx" else WARNINGS
    way = ("-fsyntax-only",)
    if standard != "c++17":  # as which test_programs.py compiles it, with these warnings
        with open(tmp_path / "all.cpp", "a") as source:
            source.write("#include <culaunch/jit/implementation.h>\n")
    elif compiler == "gxx":  # which warns of uninitialized variables as it optimizes
        way = ("-O1", "-g0", "-c")
    build(program, "all.o", f"-std={standard}", *way, *flags, tmp_path / "all.cpp")


@pytest.mark.needs("tvm_ffi")
@pytest.mark.parametrize("compiler", ["gxx", "clang"])
def test_kernel_libraries_have_no_warnings(request, build, compiler):
    from tvm_ffi import libinfo

    program = request.getfixturevalue(compiler)
    headers = ("-isystem", libinfo.find_include_path())
    build(program, "exports.o", "-fsyntax-only", *WARNINGS, *headers, HERE / "exports.cpp")


def test_a_library_shows_nothing_of_culaunch(build, gxx):
    # Unoptimized code has instances of the standard library, whose names have our types in them.
    library = build(gxx, "visible.so", "-O2", "-shared", "-fPIC", HERE / "library.cpp")
    symbols = subprocess.run(
        ["nm", "-DC", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    assert "library_driver" in symbols
    assert "culaunch" not in symbols
    needed = subprocess.run(
        ["readelf", "-d", library], capture_output=True, text=True, check=True
    ).stdout
    assert "libcuda" not in needed


def test_two_versions_in_one_process_are_independent(build, gxx, run_cpp):
    namespace = f"v{cl.__version__.replace('.', '_')}"
    libraries = [
        build(gxx, f"{name}.so", "-shared", "-fPIC", *flags, HERE / "library.cpp")
        for name, flags in (("ours", ()), ("theirs", (f"-D{namespace}=v9_9_9",)))
    ]
    program = build(gxx, "versions", HERE / "test_versions.cpp")
    assert run_cpp(program, *libraries) == ""


@pytest.mark.needs("nvrtc")
def test_damaged_images_are_refused_without_a_read_past_their_end(
    build_thin, gxx, run_cpp, tmp_path
):
    source = "template <class T> __global__ void k(T* x, int n) { if (n > 1) x[n] = n; }"
    names = ["k<float>", "k<int>"]
    for arch in (["sm_90"], ["sm_80", "sm_90a", "compute_90"]):
        image = cl.compile(source, arch=arch, names=names)
        image.save(tmp_path / f"{len(arch)}.image")
    # So many that they do not fit into one of the containers behind a fatbin.
    many = {f"k<{number}>": "_Z1k" + "x" * 40 for number in range(3000)}
    cl.Image(image.data, names=many).save(tmp_path / "4.image")
    program = build_thin(gxx, "fuzz_image", *WARNINGS, *SANITIZERS, HERE / "fuzz_image.cpp")
    said = run_cpp(program, *sorted(tmp_path.glob("*.image")))
    found = re.findall(r"^names (\d+) short (\d+) changed (\d+)$", said, re.MULTILINE)
    assert [int(names) for names, _, _ in found] == [2, 2, 3000]
    # A hash could refuse all that was changed; that the sizes add up is what can be seen here.
    assert all(int(short) > 1900 and int(changed) > 100 for _, short, changed in found[:2])


def test_without_exceptions_every_failure_is_a_value(build, gxx, run_cpp, fake_driver):
    source = HERE / "test_no_exceptions.cpp"
    program = build(gxx, "no_exceptions", "-fno-exceptions", *WARNINGS, source)
    assert run_cpp(program) == ""
    environment = {**os.environ, "CULAUNCH_DRIVER": str(fake_driver)}
    done = subprocess.run([program, "throw"], env=environment, capture_output=True, check=False)
    assert done.returncode != 0
    assert done.stderr.startswith(b"culaunch: the bytes are not an image")


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",)], ids=["O0", "O2"])
@pytest.mark.parametrize("compiler", ["gxx", "clang"])
def test_a_plugin_is_unloaded_a_thousand_times(request, build, gxx, run_cpp, compiler, flags):
    program = build(gxx, "reload", HERE / "test_reload.cpp")
    compiler = request.getfixturevalue(compiler)
    words = ("-shared", "-fPIC", *flags, HERE / "plugin.cpp")
    assert run_cpp(program, build(compiler, "plugin.so", *words)) == ""


def test_the_header_puts_no_unique_symbol_into_a_library(build, gxx):
    for level in ("-O0", "-O2"):
        library = build(gxx, "plugin.so", "-shared", "-fPIC", level, HERE / "plugin.cpp")
        symbols = subprocess.run(
            ["readelf", "-sW", library], capture_output=True, text=True, check=True
        ).stdout
        assert "UNIQUE" not in symbols


def test_what_a_launch_costs_over_the_driver_can_be_measured(gxx, tmp_path):
    script = HERE.parents[1] / "benchmarks" / "cpp_launch.py"
    result = tmp_path / "result.json"
    done = subprocess.run(
        [sys.executable, script, "--rounds", "3", "--json", result],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr  # whether the bar is met is the machine's matter
    ways = {"by hand", "Launch", "Launch, device said", "checked call", "checked arrays"}
    ways |= {"default stream by hand", "default stream Launch"}
    found = json.loads(result.read_text())
    assert set(found["stub"]) == ways
    assert found["stub"]["by hand"] < 300  # 1.5 where it does nothing, 1,600 where it writes down
    assert set(found) <= {"stub", "GPU"}
    assert done.stdout.count("<= 1.5: ") == 2


def test_what_a_file_pays_for_the_headers_has_a_bound(gxx, cuda_headers):
    def lines(header):
        done = subprocess.run(
            [
                gxx,
                "-std=c++17",
                "-E",
                "-P",
                f"-I{cl.cpp.include_dir()}",
                f"-I{cuda_headers}",
                "-xc++",
                "-",
            ],
            input=f"#include <culaunch/{header}>",
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.count("\n")

    # Time depends on the machine, the number of lines on the headers. 36,000 lines are 0.45 s.
    # Nearly all are cuda.h and the standard library.
    launch = lines("culaunch.h")
    assert 20_000 < launch < 45_000
    assert lines("jit.h") < launch + 2_500
