"""Every option of a launch, by every way to launch: the driver gets the same.

The table of options is the extension's (include/culaunch/launch_options.h). An option without a
value here fails. An option that a way to launch loses fails, too.
"""

from __future__ import annotations

import ctypes
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import culaunch as cl
from culaunch import _core
from culaunch._launch.launches.launch_options import OPTIONS

PTX = """
.version 8.4
.target sm_90
.address_size 64
.visible .entry fill(.param .u64 fill_0, .param .u32 fill_1) { ret; }
"""
# A value of each option that no launch has by default, and what the driver's log has then.
VALUES = {
    "grid": ((8, 4), "8,4,1"),
    "block": ((16, 2), "16,2,1"),
    "shared_memory": (1024, "1024"),
    "stream": (None, "own"),  # the value is made by the test
    "cluster": ((2, 1, 1), "2,1,1"),
    "preferred_cluster": (4, "4,1,1"),
    "spread_clusters": (True, "1"),
    "cooperative": (True, "1"),
    "programmatic": (True, "1"),
    "priority": (-3, "-3"),
}
LOGGED = {"shared_memory": "shared"}  # the names of the log, if they are others
NEEDED = {"preferred_cluster": ("cluster",)}  # options that an option needs
USUAL = {"grid": "4,1,1", "block": "32,1,1", "shared": "0", "stream": "default"}
IN_BODIES = OPTIONS.keys() - {"stream"}  # a function launches in the current stream


def cases(has):
    """Yield the sets of options to try: each option, and all together."""
    for name in OPTIONS:
        if name in has:
            yield name, {name, *NEEDED.get(name, ())}
    yield "all", {name for name in OPTIONS if name in has}


def options_of(case):
    """Return the keywords of a launch with these options."""
    given = {"grid": 4, "block": 32}
    for name in OPTIONS:  # in one order
        if name in case:
            given[name] = cl.Stream() if name == "stream" else VALUES[name][0]
    return given


def wanted(case):
    """Return what the log says of a launch with these options."""
    return {**USUAL, **{LOGGED.get(name, name): VALUES[name][1] for name in case}}


def launches(log):
    """Read each launch from the log, without the kernel's name and its arguments."""
    lines = [line for line in log.splitlines() if line.startswith("launch ")]
    found = []
    for line in lines:
        words = dict(re.findall(r"(\w+)=(\S+)", line.partition(" args ")[0]))
        assert words.pop("device") == "0"
        found.append(words)
    return found


class Fake:
    """The fake driver of this process, and a kernel of it."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.fake_driver_log.restype = ctypes.c_char_p
        self.kernel = cl.load(PTX.encode()).kernel("fill", signature="float*, int")
        self.x = np.zeros(4, np.float32)
        self.clear()

    def clear(self):
        self.library.fake_driver_clear()

    def launches(self):
        return launches(self.library.fake_driver_log().decode())


@pytest.fixture
def fake(fake_driver, monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", str(fake_driver))
    driver = _core.current_driver()
    driver.push_device(0)  # a default stream belongs to the current context
    yield Fake(fake_driver)
    driver.pop_device()


# ---- the ways: each launches once or more, with the keywords of one launch


def by_brackets(fake, options):
    key = [options.get(name) for name in ("grid", "block", "shared_memory", "stream")]
    key[2] = key[2] or 0
    fake.kernel[tuple(key)](fake.x, 1)


def by_launch(fake, options):
    fake.kernel.launch(fake.x, 1, **options)


def by_configure(fake, options):
    fake.kernel.configure(**options)(fake.x, 1)


def by_a_graph(fake, options):
    """Where each launch goes as a graph that can."""
    cl.graph.set_graphs(True)
    launcher = fake.kernel.configure(**options)
    for _ in range(12):
        launcher(fake.x, 1)
    cl.graph.set_graphs("auto")


def by_an_explicit_graph(fake, options):
    with cl.Graph() as graph:
        fake.kernel.configure(**options)(fake.x, 1)
    for _ in range(2):
        graph.launch()


def in_a_body(fake, options, name="f"):
    def f(x):
        fake.kernel.configure(**options)(x, 1)

    f.__name__ = name
    return cl.function(f, mutates=["x"])


def by_configure_in_a_body(fake, options):
    f = in_a_body(fake, options)
    for _ in range(3):  # the first call is recorded
        f(fake.x)


def by_launch_in_a_body(fake, options):
    @cl.function(mutates=["x"])
    def f(x):
        n = x.shape[0] // 4  # numbers that a call computes
        numbers = {name: value * n for name, value in options.items() if type(value) is int}
        fake.kernel.launch(x, 1, **{**options, **numbers})

    for _ in range(3):
        f(fake.x)


def by_brackets_in_a_body(fake, options):
    grid, block, shared = (options.get(name, 0) for name in ("grid", "block", "shared_memory"))

    @cl.function(mutates=["x"])
    def f(x):
        fake.kernel[grid, block, shared](x, 1)

    for _ in range(3):
        f(fake.x)


def by_a_launcher_from_outside(fake, options):
    launcher = fake.kernel.configure(**options)

    @cl.function(mutates=["x"])
    def f(x):
        launcher(x, 1)

    for _ in range(3):
        f(fake.x)


def by_launch_if(fake, options):
    @cl.function(mutates=["x"])
    def f(x):
        cl.launch_if(x.shape[0] > 0, fake.kernel.configure(**options), x, 1)

    for _ in range(3):
        f(fake.x)


def in_debugging_mode(fake, options):
    f = in_a_body(fake, options)
    with cl.function_debugging():
        f(fake.x)


_numbers = itertools.count()


def by_a_torch_operator(fake, options):
    torch = pytest.importorskip("torch", reason="needs torch")
    op = cl.frameworks.torch_op(f"culaunch_options::op{next(_numbers)}", in_a_body(fake, options))
    for _ in range(3):
        op(torch.zeros(4))


def saved(fake, options, tmp_path):
    f = in_a_body(fake, options)
    f.specialize(x=cl.Array("float32", "n"))
    cl.ship.save([f], tmp_path / "saved.culib")
    return cl.ship.load_library(tmp_path / "saved.culib")


def by_a_saved_function(fake, options, tmp_path):
    f = saved(fake, options, tmp_path)["f"]
    for _ in range(3):
        f(fake.x)


def by_one_that_is_saved_again(fake, options, tmp_path):
    cl.ship.save(list(saved(fake, options, tmp_path)), tmp_path / "again.culib")
    cl.ship.load_library(tmp_path / "again.culib")["f"](fake.x)


def by_the_command_line(fake, options, tmp_path):
    from click.testing import CliRunner

    from culaunch.cli.run import command

    (tmp_path / "fill.ptx").write_text(PTX)
    words = [str(tmp_path / "fill.ptx"), "--arg", "x:float32[4]=zeros", "--arg", "n:int32=1"]
    words += ["--signature", "float*, int"]
    for name, value in options.items():
        word = f"--{name.replace('_', '-')}"
        sizes = value if isinstance(value, tuple) else (value,)
        words += [word] if value is True else [word, ",".join(map(str, sizes))]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output


# A way, and the options that it has.
WAYS = [
    (by_brackets, {"grid", "block", "shared_memory", "stream"}),
    (by_launch, OPTIONS.keys()),
    (by_configure, OPTIONS.keys()),
    (by_a_graph, OPTIONS.keys()),
    # A graph uses its launch's stream, and a programmatic node has another kind of edge.
    (by_an_explicit_graph, IN_BODIES - {"programmatic"}),
    (by_configure_in_a_body, IN_BODIES),
    (by_launch_in_a_body, IN_BODIES),
    (by_brackets_in_a_body, {"grid", "block", "shared_memory"}),
    (by_a_launcher_from_outside, IN_BODIES),
    (by_launch_if, IN_BODIES),
    (in_debugging_mode, IN_BODIES),
    (by_a_torch_operator, IN_BODIES),
    (by_a_saved_function, IN_BODIES),
    (by_one_that_is_saved_again, IN_BODIES),
    (by_the_command_line, IN_BODIES),
]


def test_every_option_has_a_value_here():
    assert list(VALUES) == list(OPTIONS)


@pytest.mark.parametrize(
    ("way", "case"),
    [
        pytest.param(way, case, id=f"{way.__name__}-{name}")
        for way, has in WAYS
        for name, case in cases(has)
    ],
)
def test_the_driver_gets_every_option(fake, tmp_path, way, case):
    options = options_of(case)
    fake.clear()
    arguments = (tmp_path,) if "tmp_path" in way.__code__.co_varnames[:3] else ()
    way(fake, options, *arguments)
    found = fake.launches()
    assert found != []
    assert found == [wanted(case)] * len(found)


# ---- C++


@pytest.mark.needs("tvm_ffi")
def test_an_exported_library_has_every_option(fake, tmp_path):
    import tvm_ffi

    functions, wants = [], []
    for number, (_, case) in enumerate(cases(IN_BODIES)):
        f = in_a_body(fake, options_of(case), name=f"f{number}")
        f.specialize(x=cl.Array("float32", "n"))
        functions.append(f)
        wants.append(wanted(case))
    path = tmp_path / "liboptions.so"
    cl.ship.export(functions, path, flags=["-O0", "-Wall", "-Wextra", "-Werror"])
    library = tvm_ffi.load_module(str(path))
    fake.clear()
    for number in range(len(functions)):
        getattr(library, f"f{number}")(fake.x)
    assert fake.launches() == wants


def test_a_saved_function_is_exported_with_every_option(fake, tmp_path):
    """Its C++ text equals the function's own text, which is compiled above."""
    for _, case in cases(IN_BODIES):
        options = options_of(case)
        f = in_a_body(fake, options)
        f.specialize(x=cl.Array("float32", "n"))
        found = saved(fake, options, tmp_path)["f"]
        assert launch_of(found.source("c++")) == launch_of(f.source("c++"))
        assert len(launch_of(f.source("c++"))) > len(case)


def launch_of(source):
    """Return the words with which C++ text configures its launch."""
    return re.findall(r"config\.\w+ = [^;]*|fn::Dims\([^)]*\)|fn::Dimension\([^)]*\)", source)


PROGRAM = """
#include <culaunch/culaunch.h>

int main() {
  static const char kPtx[] = R"(%s)";
  const culaunch::Module module(kPtx, sizeof kPtx - 1);
  culaunch::Driver& driver = culaunch::Driver::Get();
  const culaunch::DeviceGuard guard(driver, 0);
  CUstream stream = nullptr;
  driver.cuStreamCreateWithPriority(&stream, 0, 0);
%s}
"""
FIELDS = {  # a kind of option -> its fields of LaunchConfig
    "required_dims": "config.{0} = culaunch::Dim3({1});",
    "dims": "config.{0} = culaunch::Dim3({1});",
    "bytes": "config.{0} = {1};",
    "stream": "config.{0} = stream;",
    "switch": "config.{0} = true;",
    "int": "config.has_{0} = true; config.{0} = {1};",
}


def test_a_cpp_program_has_every_option(build, gxx, run_cpp, tmp_path, monkeypatch):
    lines, wants = [], []
    for _, case in cases(OPTIONS):
        lines.append("{\n    culaunch::LaunchConfig config(4, 32);")
        for name in sorted(case):
            value = VALUES[name][0]
            sizes = value if isinstance(value, tuple) else (value,)
            text = ", ".join(map(str, sizes))
            lines.append(f"    {FIELDS[OPTIONS[name].kind].format(name, text)}")
        lines.append('    module["fill"](config, static_cast<float*>(nullptr), 1);\n  }')
        wants.append(wanted(case))
    source = tmp_path / "options.cpp"
    source.write_text(PROGRAM % (PTX, "\n".join(lines)))
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_DRIVER_LOG_FILE", str(log))
    run_cpp(build(gxx, "options", "-Wall", "-Wextra", "-Werror", source, "-ldl"))
    assert launches(log.read_text()) == wants


# ---- Triton: what its options are here, and what its own launcher adds

TRITON = {
    "grid": ((3, 2), {}, {"grid": "3,2,1"}),
    "block": ((1,), {"num_warps": 8}, {"block": "256,1,1"}),
    "cluster": (
        (4,),
        {"num_ctas": 2},
        {"grid": "8,1,1", "cluster": "2,1,1", "spread_clusters": "1"},
    ),
    "cooperative": ((1,), {"launch_cooperative_grid": True}, {"cooperative": "1"}),
    "programmatic": ((1,), {"launch_pdl": True}, {"programmatic": "1"}),
}
# Triton launches in the current stream, with the shared memory that the kernel needs; it has no
# word for the others. It spreads the blocks of each cluster.
NOT_TRITONS = {"shared_memory", "stream", "preferred_cluster", "priority"}
WITH_CLUSTERS = {"spread_clusters"}


@pytest.fixture
def triton_kernel(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "function"))
    from kernels_in_bodies import add

    return add


@pytest.mark.needs("torch", "triton")
@pytest.mark.parametrize("name", TRITON)
def test_triton_s_options(fake, torch, triton_kernel, name):
    from culaunch.triton import native

    kernel = native(triton_kernel)
    grid, options, want = TRITON[name]
    x = torch.zeros(64)

    def launch(x):
        kernel[grid](x, x, x, 64, 1.0, BLOCK=64, **options)

    f = cl.function(launch, mutates=["x"])
    launch(x)
    for _ in range(3):
        f(x)
    with cl.function_debugging():
        f(x)
    found = fake.launches()
    usual = {"grid": "1,1,1", "block": "128,1,1", "shared": "0", "stream": "default"}
    assert found == [{**usual, **want}] * 5


def test_triton_has_a_word_for_each_other_option():
    assert TRITON.keys() | NOT_TRITONS | WITH_CLUSTERS == OPTIONS.keys()


# ---- what describes the options


def test_a_launcher_has_each_option(fake):
    for name, case in cases(OPTIONS):
        options = options_of(case)
        launcher = fake.kernel.configure(**options)
        for option in OPTIONS.values():
            given = options.get(option.name, option.default)
            if option.kind.endswith("dims") and given is not None:
                sizes = given if isinstance(given, tuple) else (given,)
                given = (*sizes, *[1] * (3 - len(sizes)))
            assert getattr(launcher, option.name) == given, name
            assert given in (option.default, options.get("stream")) or (
                option.kind in ("bytes", "stream") or option.name in repr(launcher)
            )


def test_explain_shows_each_option(fake):
    for _, case in cases(IN_BODIES):
        text = in_a_body(fake, options_of(case)).explain(fake.x)
        said = re.search(r"fill\[(.*)\]\(x, 1\)", text)[1]
        options = wanted(case)
        shown = {name: options.pop(LOGGED.get(name, name)) for name in IN_BODIES & case}
        for name, value in shown.items():
            sizes = re.sub(r"(,1)+$", "", value).replace(",", ", ")
            sizes = f"({sizes})" if "," in sizes else sizes
            kind, has_attribute = OPTIONS[name].kind, OPTIONS[name].attribute
            word = name if kind == "switch" else f"{name}={sizes}" if has_attribute else sizes
            assert word in said
