"""Libraries that nobody would write: refused with an ImageError, or harmless."""

import contextlib
import random
import struct

import numpy as np
import pytest
from bodies import shape_only
from library_parts import mutants, packed, parts_of, saved_bytes

import culaunch as cl

pytestmark = pytest.mark.usefixtures("emulated")

x5 = np.arange(5, dtype=np.float32)
# The errors that a program with wrong numbers may raise.
ERRORS = (ArithmeticError, ValueError, TypeError, AssertionError, IndexError, RuntimeError,
          MemoryError, cl.CulaunchError)  # fmt: skip


@pytest.fixture
def data(scale):
    scale.specialize()
    scale(x5, 1.0)
    return saved_bytes([scale])


def entry(change):
    """Change the first function's entry."""

    def apply(manifest):
        change(manifest["functions"][0])

    return apply


def kind(change):
    """Change the first kind of the first function."""

    def apply(manifest):
        change(manifest["functions"][0]["kinds"][0])

    return apply


def parameter(change, index=0):
    """Change a parameter of the first function."""

    def apply(manifest):
        change(manifest["functions"][0]["parameters"][index])

    return apply


def kernel(**values):
    return kind(lambda k: k["constants"].append({"kernel": values}))


DEEP = {"tuple": []}
for _ in range(40):
    DEEP = {"tuple": [DEEP]}

WRONG = {
    "name": (entry(lambda f: f.update(name="a b")), "function must be an identifier"),
    "keyword": (entry(lambda f: f.update(name="class")), "function must be an identifier"),
    "private": (entry(lambda f: f.update(name="_read")), "function must be an identifier"),
    "reserved": (entry(lambda f: f.update(name="source")), "function must be an identifier"),
    "twice": (lambda m: m["functions"].append(m["functions"][0]), "scale must not appear twice"),
    "doc": (entry(lambda f: f.update(doc=3)), "doc must be a text"),
    "backward": (entry(lambda f: f.update(backward="a.b")), "backward must be the name"),
    "forward": (entry(lambda f: f.update(forward=[])), "forward must be the name"),
    "absent": (entry(lambda f: f.update(backward="other")), "gradients are invalid"),
    "no forward": (
        entry(lambda f: f.update(backward="scale", forward="other")), "gradients are invalid"),
    "parameters": (entry(lambda f: f.pop("parameters")), "parameters must be a list"),
    "many": (entry(lambda f: f.update(parameters=[{}] * 256)), "at most 255 entries"),
    "parameter": (entry(lambda f: f["parameters"].append(1)), "parameter 3 must be an object"),
    "nameless": (parameter(lambda p: p.update(name="a-b")), "parameter 0 must have a name"),
    "same": (parameter(lambda p: p.update(name="x"), 1), "parameter 1 must have a name"),
    "how": (parameter(lambda p: p.update(how=3)), "how must be 0, 1 or 2 for x"),
    "order": (parameter(lambda p: p.update(how=2)), "how must be 0, 1 or 2 for factor"),
    "default": (parameter(lambda p: p.update(default={"a": 1})), "must be of a known form"),
    "gap": (parameter(lambda p: p.update(default=1)), "factor must have a default"),
    "deep": (parameter(lambda p: p.update(default=DEEP), 2), "must be of a known form"),
    "annotation": (parameter(lambda p: p.update(annotation=[])), "an annotation must be an object"),
    "plain": (
        parameter(lambda p: p["annotation"].update(plain=["object"])), "contain only int, float"),
    "dims": (
        parameter(lambda p: p["annotation"]["array"].update(dims="a-b")), "got 'a-b' in"),
    "dtypes": (
        parameter(lambda p: p["annotation"]["array"].update(dtypes=["x"])), "dtype must be one"),
    "array": (parameter(lambda p: p["annotation"].update(array=1)), "must be an object or null"),
    "mutates": (entry(lambda f: f.update(mutates=["z"])), "of mutates must be a parameter"),
    "may": (entry(lambda f: f.update(may_mutate="x")), "may_mutate must be a list"),
    "kinds": (entry(lambda f: f.update(kinds={})), "kinds must be a list"),
    "kind": (entry(lambda f: f.update(kinds=[1])), "a kind must be an object"),
    "arguments": (kind(lambda k: k["arguments"].pop()), "a list of 3 entries"),
    "argument": (kind(lambda k: k["arguments"].__setitem__(0, "str")), "an entry of a kind"),
    "dtype": (
        kind(lambda k: k["arguments"].__setitem__(0, {"array": ["x", 1]})), "an array of a kind"),
    "rank": (
        kind(lambda k: k["arguments"].__setitem__(0, {"array": ["int8", 33]})), "an array of a"),
    "value": (
        kind(lambda k: k["arguments"].__setitem__(0, {"value": 1})), "an entry of a kind"),
    "empty": (kind(lambda k: k["arguments"].__setitem__(0, {"tuple": []})), "an entry of a kind"),
    "program": (kind(lambda k: k.update(program="programs/x")), "must be the name of a member"),
    "words": (kind(lambda k: k.update(program="programs/odd.bin")), "must consist of words"),
    "constants": (kind(lambda k: k.update(constants=None)), "constants must be a list"),
    "constant": (kind(lambda k: k["constants"].append({"call": "os.system"})), "of a known form"),
    "object": (kernel(image="x", name="a"), "must be a member .got 'x'"),
    "kernel": (kind(lambda k: k["constants"].append({"kernel": 1})), "an object with an image and"),
    "tuple": (kind(lambda k: k["constants"].append({"namedtuple": 1})), "an object with a name"),
    "fields": (
        kind(lambda k: k["constants"].append({"namedtuple": {"name": "a", "fields": ["a(", "b"]}})),
        "different names that are Python identifiers"),
    "keys": (kind(lambda k: k["constants"].append({"keys": [1, 1]})), "contain a key twice"),
    "bytes": (kind(lambda k: k["constants"].append({"bytes": "0g"})), "must be of a known form"),
    "texts": (kind(lambda k: k["texts"].append(1)), "each item of texts must be a text"),
    "long": (kind(lambda k: k["texts"].append("x" * 70_000)), "must be a text of at"),
    "writes": (kind(lambda k: k.update(writes=[3])), "each item of writes must be the number"),
    "guards": (kind(lambda k: k.update(guards=[[0, "a"]])), "must be the number of a block"),
    "guard": (kind(lambda k: k.update(guards=[[0, "a", 1]])), "must be the number of a block"),
    "explanation": (kind(lambda k: k.update(explanation=1)), "explanation must be a text"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_entry(data, name):
    change, words = WRONG[name]
    manifest, contents = parts_of(data)
    contents["programs/odd.bin"] = bytes(15)
    change(manifest)
    with pytest.raises(cl.ImageError, match=words):
        cl.ship.load_library(packed(manifest, contents))


def test_a_function_of_another_kind_is_skipped(data):
    manifest, contents = parts_of(data)
    manifest["functions"].append({"name": "later", "kind": "of later"})
    assert list(cl.ship.load_library(packed(manifest, contents)).functions) == ["scale"]


@pytest.mark.parametrize("version", [1, 2])
def test_functions_of_this_kind_need_version_3(data, version):
    """A later reader skips them; this one must not accept unspecified fields."""
    manifest, contents = parts_of(data)
    manifest["version"] = version
    assert len(cl.ship.load_library(packed(manifest, contents))) == 0


def first_use(manifest, contents):
    lib = cl.ship.load_library(packed(manifest, contents))
    return lib.scale(x5, 2.0)


@pytest.mark.parametrize(
    "text", ["{0.__class__}", "{0[a]}", "{0!r}", "{x}", "{9}", "{", "{0:>9999}", "{0:{1}}"]
)
def test_the_text_of_a_check_is_no_program(data, text):
    manifest, contents = parts_of(data)
    one = manifest["functions"][0]["kinds"][0]
    one["texts"] = [text if "contiguous" in known else known for known in one["texts"]]
    with pytest.raises(cl.ImageError, match="text of a check must be a valid template"):
        first_use(manifest, contents)


def test_a_place_is_not_looked_up(data, monkeypatch):
    """A text that looks like a place must not be read as a file."""
    manifest, contents = parts_of(data)
    one = manifest["functions"][0]["kinds"][0]
    one["texts"] = ["/dev/zero:1" if ".py:" in text[-12:] else text for text in one["texts"]]
    monkeypatch.setattr("linecache.getline", lambda *_: pytest.fail("a file is read"))
    lib = cl.ship.load_library(packed(manifest, contents))
    with pytest.raises(OverflowError, match="at /dev/zero:1: a float of 32 bits"):
        lib.scale(x5, 1e300)


def test_images_and_kernels_that_are_none(data):
    manifest, contents = parts_of(data)
    (name,) = (one for one in contents if one.startswith("images/"))
    for wrong, words in ((b"nothing", "images/"), (b"", "images/")):
        with pytest.raises(cl.ImageError, match=words):
            first_use(manifest, {**contents, name: wrong})
    constants = manifest["functions"][0]["kinds"][0]["constants"]
    for symbol, words in (("nothing", "nothing"), ("scale", "scale")):
        constants[0]["kernel"]["name"] = symbol
        with pytest.raises(cl.ImageError, match=words):
            first_use(manifest, contents)
    constants[0] = 7
    with pytest.raises(cl.ImageError, match="program: a LAUNCH has no kernel"):
        first_use(manifest, contents)


def test_a_program_of_another_kind(data):
    manifest, contents = parts_of(data)
    one = manifest["functions"][0]["kinds"][0]
    one["arguments"] = [{"array": ["float32", 0]}, "float", False]
    lib = cl.ship.load_library(packed(manifest, contents))
    with pytest.raises(cl.ImageError, match="program: it reads an axis that an array lacks"):
        lib.scale(np.zeros(()).astype("float32", copy=False)[...], 2.0)


def test_changed_words_do_no_harm(data):
    manifest, contents = parts_of(data)
    name = manifest["functions"][0]["kinds"][0]["program"]
    taken = 0
    for changed in mutants(manifest, contents, name, seed=7):
        lib = cl.ship.load_library(changed)
        with contextlib.suppress(*ERRORS):
            lib.scale(x5[:0], 2)
            taken += 1
        with contextlib.suppress(*ERRORS):
            lib.scale.abstract(shape_only((0,), "float32"), 2.0)
    assert taken > 5


def test_changed_bytes_do_no_harm(data):
    rng = random.Random(11)
    manifest, _ = parts_of(data)
    end = data.index(b'"kinds"') + 4000
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(3):
            changed[rng.randrange(end)] = rng.randrange(256)
        with contextlib.suppress(*ERRORS):
            lib = cl.ship.load_library(bytes(changed))
            str(lib)
            lib.scale(x5[:0], 2.0)
    assert manifest["version"] == 4


def as_version_1(data):
    """Return a program as it was before its effects said where they stand."""
    words = struct.unpack(f"<{len(data) // 8}q", data)
    at = 5 + words[4]
    blocks = []
    for size in words[5:at]:
        block, end, is_effect = [], at + size, False
        while at < end:
            number, length = words[at] & 0xFFFFFFFF, words[at] >> 32
            record = list(words[at : at + length])
            if is_effect and number in (1, 2, 3, 5):
                record = [record[0] - (1 << 32), *record[1:-1]]
            block += record
            is_effect = is_effect or number == 113
            at += length
        blocks.append(block)
    made = [1, *words[1:5], *map(len, blocks), *(word for block in blocks for word in block)]
    return struct.pack(f"<{len(made)}q", *made)


def test_libraries_of_version_3_are_read(data):
    manifest, contents = parts_of(data)
    for one in {kind["program"] for kind in manifest["functions"][0]["kinds"]}:
        old = as_version_1(contents[one])
        assert len(old) < len(contents[one])
        contents[one] = old
    manifest["version"] = 3
    lib = cl.ship.load_library(packed(manifest, contents))
    assert lib.scale(x5, 2.0).tolist() == [0, 2, 4, 6, 8]
    assert lib.scale.abstract(shape_only((4,), "float32"), 2.0).shape == (4,)
    manifest["version"] = 2
    assert len(cl.ship.load_library(packed(manifest, contents))) == 0
    manifest["version"] = 5
    with pytest.raises(cl.ImageError, match=r"format version 5, but .* up to 4: update culaunch"):
        cl.ship.load_library(packed(manifest, contents))
