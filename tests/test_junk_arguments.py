"""Whatever is given for an argument of a public name, the exception is one of the documented ones.

A mistake in a call is a TypeError, a ValueError or an OverflowError, a file that cannot be used an
OSError, everything else one of culaunch's own; and the message is about the argument, not what
Python happens to say three frames below.
"""

import contextlib
import inspect
import os
import re
import warnings

import pytest

import culaunch as cl
from culaunch import testing

DOCUMENTED = (TypeError, ValueError, OverflowError, OSError, cl.CulaunchError)
# What Python itself says of a value that was used as something that it is not.
BARE = re.compile(
    r"object is not (iterable|callable|subscriptable|a mapping)|has no attribute|has no len"
    r"|unhashable type|not supported between|unsupported operand|object cannot be interpreted"
    r"|embedded null|surrogates not allowed|invalid literal for int|must be real number"
    r"|expected str, bytes or os.PathLike object|cannot unpack|not all arguments converted"
)


class Odd:
    """An object that is nothing."""

    def __repr__(self):
        return "Odd()"


JUNK = [
    None, True, 3, -1, 10**5000, 2.5, float("nan"), 1j, "", "junk", "a\0b", "\ud800", b"", b"junk",
    [], [3], ["junk"], [None], (), {}, {"a": 3}, {3: "a"}, {"\ud800": "a"}, {"a\0": "b"}, {"k"},
    Odd(), Odd, object, lambda: None, iter(()), range(3), memoryview(b"junk"), os.environ,
]  # fmt: skip

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
    """Stop load_inline where it would start a compiler: the arguments are checked by then."""

    def build(*arguments):
        raise cl.CompileError("not here")

    monkeypatch.setattr("culaunch._embed.inline.build", build, raising=False)


# How each name is called when all is well; every parameter is then replaced by every junk value.
CALLS = {
    "Cache": (cl.Cache, {"path": "cache"}),
    "Cache.get_or_make": (lambda **k: cl.Cache("c").get_or_make(**k), {"key": KEY, "make": Odd}),
    "Cache.lookup": (lambda **k: cl.Cache("c").lookup(**k), {"key": KEY}),
    "Cache.store": (lambda **k: cl.Cache("c").store(**k), {"key": KEY, "image": cl.Image(PTX)}),
    "Cache.verify": (lambda **k: cl.Cache("c").verify(**k), {"drop": True}),
    "Headers": (cl.Headers, {"files": {"a.h": ""}}),
    "Headers.from_directory": (cl.Headers.from_directory, {"directory": "."}),
    "Headers.from_package": (cl.Headers.from_package, {"package": "culaunch"}),
    "Image": (cl.Image, {"data": PTX}),
    "Image.open": (cl.Image.open, {"source": PTX}),
    "Image.save": (cl.Image(PTX).save, {"path": "x.ptx"}),
    "compile": (cl.compile, {"source": CUDA, "arch": "compute_80", "cache": False}),
    "compile_many": (cl.compile_many, {"requests": [CUDA], "arch": "compute_80", "cache": False}),
    "embed": (cl.embed, {"image": PTX, "output_object": "k.o", "name": "k"}),
    "fatbin": (cl.fatbin, {"images": [PTX]}),
    "inspect": (cl.inspect, {"source": PTX}),
    "link": (cl.link, {"images": PTX, "arch": "sm_80", "cache": False}),
    "load": (cl.load, {"source": PTX}),
    "load_inline": (cl.load_inline, {"name": "m", "cpp_sources": "int x;"}),
    "set_driver": (cl.set_driver, {"name": "emulator"}),
    "testing.use_driver": (lambda name: testing.use_driver(name).__enter__(), {"name": "cuda"}),
}


def parameters(name):
    function, call = CALLS[name]
    try:
        signature = inspect.signature(function)
    except ValueError:
        return list(call)
    named = [
        one.name
        for one in signature.parameters.values()
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    return list(dict.fromkeys([*named, *call]))


@pytest.mark.parametrize("name", CALLS)
def test_junk_is_refused_by_name(name, place, monkeypatch):
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(place / "cache"))
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    if name == "load_inline":
        pytest.importorskip("tvm_ffi")
    function, call = CALLS[name]
    wrong = []
    for parameter in parameters(name):
        for value in JUNK:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    function(**{**call, parameter: value})
                except DOCUMENTED as error:
                    if BARE.search(str(error)):
                        wrong.append(f"{parameter}={short(value)}: {error!r}")
                except Exception as error:  # noqa: BLE001 - the point of the test
                    wrong.append(f"{parameter}={short(value)}: {error!r}")
    assert wrong == []


def short(value):
    return "10**5000" if isinstance(value, int) and value > 10**50 else repr(value)


@pytest.mark.parametrize("name", CALLS)
def test_a_switch_takes_true_and_false_alone(name, place):
    function, call = CALLS[name]
    with contextlib.suppress(ValueError):  # of what has no signature
        for one in inspect.signature(function).parameters.values():
            if isinstance(one.default, bool):
                with pytest.raises(TypeError, match=f"{one.name} must be True"):
                    function(**{**call, one.name: "no"})
