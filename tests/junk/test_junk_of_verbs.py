"""Junk for the arguments of what compiles, reads, writes and loads."""

import contextlib
import importlib
import inspect
import os

import pytest
from junk import Odd, wrong_answers

import culaunch as cl
from culaunch import testing
from culaunch._cache.note import Note

PTX = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"
CUDA = "__global__ void k() {}"
KEY = "0" * 64


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Run where a name that junk becomes does no harm, with the modules that the calls need."""
    folder = tmp_path_factory.mktemp("junk")
    before = os.getcwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.fixture(autouse=True)
def nothing_is_built(monkeypatch):
    """Stop where a compiler would be started: the arguments are checked by then."""

    def build(*arguments):
        raise cl.CompileError("not here")

    # Code that reads the function from its module while it is replaced would keep the replacement.
    importlib.import_module("culaunch._inline.c_driver")
    monkeypatch.setattr("culaunch._inline.inline.build_library", build)
    monkeypatch.setattr("culaunch._inline.building.run_compiler", build)


# How each name is called when all is well; every parameter is then replaced by every junk value.
CALLS = {
    "Cache": (cl.cache.Cache, {"path": "cache"}),
    "Cache.get_or_make": (
        lambda **k: cl.cache.Cache("c").get_or_make(**k),
        {"key": KEY, "make": Odd},
    ),
    "Cache.keep_note": (
        lambda **k: cl.cache.Cache("c").keep_note(**k),
        {"key": KEY, "note": Note("0", [])},
    ),
    "Cache.private_directory": (
        lambda part: cl.cache.Cache("c").private_directory(part),
        {"part": "part"},
    ),
    "Cache.read_note": (lambda **k: cl.cache.Cache("c").read_note(**k), {"key": KEY}),
    "Cache.lookup": (lambda **k: cl.cache.Cache("c").lookup(**k), {"key": KEY}),
    "Cache.store": (
        lambda **k: cl.cache.Cache("c").store(**k),
        {"key": KEY, "image": cl.Image(PTX)},
    ),
    "Cache.bundle": (
        lambda **k: cl.cache.Cache("c").bundle(**k),
        {"output": "out", "record": "record"},
    ),
    "Cache.verify": (lambda **k: cl.cache.Cache("c").verify(**k), {"drop": True}),
    "Headers": (cl.compiling.Headers, {"files": {"a.h": ""}}),
    "Headers.from_directory": (cl.compiling.Headers.from_directory, {"directory": "."}),
    "Headers.from_package": (cl.compiling.Headers.from_package, {"package": "culaunch"}),
    "Image": (cl.Image, {"data": PTX}),
    "Image.open": (cl.Image.open, {"source": PTX}),
    "Image.save": (cl.Image(PTX).save, {"path": "x.ptx"}),
    "RemoteCache": (cl.cache.RemoteCache, {"url": "nosuch://bucket"}),
    "RemoteCache.flush": (cl.cache.RemoteCache("nosuch://b").flush, {"timeout": 1.0}),
    "build": (cl.cpp.build, {"name": "m", "sources": __file__}),
    "build_inline": (cl.cpp.build_inline, {"name": "m", "cpp_sources": "int x;"}),
    "compile": (cl.compile, {"source": CUDA, "arch": "compute_80", "cache": False}),
    "compile_many": (
        cl.compiling.compile_many,
        {"requests": [CUDA], "arch": "compute_80", "cache": False},
    ),
    "embed": (cl.cpp.embed, {"image": PTX, "output_object": "k.o", "name": "k"}),
    "fatbin": (cl.compiling.fatbin, {"images": [PTX]}),
    "inspect": (cl.inspect, {"source": PTX}),
    "link": (cl.link, {"images": PTX, "arch": "sm_80", "cache": False}),
    "load": (cl.load, {"source": PTX}),
    "load_inline": (cl.cpp.load_inline, {"name": "m", "cpp_sources": "int x;"}),
    "stubs": (cl.cpp.stubs, {"library": __file__}),
    "set_driver": (cl.driver.set_driver, {"name": "emulator"}),
    "testing.write_sarif": (testing.write_sarif, {"path": "log.sarif", "errors": []}),
    "testing.c_driver": (testing.c_driver, {"folder": "driver"}),
    "testing.use_driver": (lambda name: testing.use_driver(name).__enter__(), {"name": "cuda"}),
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", CALLS)
def test_junk_is_refused_by_name(name, place, monkeypatch):
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(place / "cache"))
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    if name in ("build", "build_inline", "load_inline", "stubs"):
        pytest.importorskip("tvm_ffi")
    function, call = CALLS[name]
    assert wrong_answers(function, call) == []


@pytest.mark.parametrize("name", CALLS)
def test_a_switch_takes_true_and_false_alone(name, place):
    function, call = CALLS[name]
    with contextlib.suppress(ValueError):  # for callables without a signature
        for one in inspect.signature(function).parameters.values():
            if isinstance(one.default, bool):
                with pytest.raises(TypeError, match=f"{one.name} must be True"):
                    function(**{**call, one.name: "no"})
