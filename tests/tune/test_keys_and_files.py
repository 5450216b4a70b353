"""Valid keys and configurations, results of checks, and files that cannot be written."""

import copy
import enum
import os
import sys
import threading

import numpy as np
import pytest

import culaunch as cl


@pytest.fixture(autouse=True)
def on_the_emulator():
    with cl.testing.use_driver("emulator"):
        yield


class Size(enum.IntEnum):
    LARGE = 4096


def nothing(n):
    """Launch nothing: every configuration is as good as any."""


ONE = [{"n": 1}]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.int64(64), 64), (np.uint8(3), 3), (np.float32(2.5), 2.5), (np.bool_(True), True),
        (np.dtype("f4"), "float32"), (np.float32, "float32"), (Size.LARGE, 4096), (None, None),
        (np.str_("a"), "a"), (-0.0, 0.0), (True, True), (10**30, 10**30),
    ],
)  # fmt: skip
def test_keys_are_what_they_say(given, kept):
    table = cl.tuning.TunedConfigs()
    tuning = cl.tuning.tune(nothing, ONE, key=(given,), table=table)
    assert tuning.key == (kept,)
    assert type(tuning.key[0]) is type(kept)
    assert table[given] == table[kept] == ONE[0]


@pytest.mark.needs("torch")
def test_dtypes_of_torch_are_those_of_bodies(tmp_path):
    """A table that was made with PyTorch's tensors is looked up in a body, and by NumPy's."""
    import torch

    table = cl.tuning.TunedConfigs(tmp_path / "t.json")
    for dtype, block in ((torch.float32, 32), (torch.float16, 64)):
        cl.tuning.tune(lambda block: None, [{"block": block}], key=(dtype,), table=table)
    assert table["float16"] == table[np.dtype("f2")] == {"block": 64}
    seen = []

    @cl.function
    def look(x):
        seen.append(table[x.dtype])

    look(np.zeros(3, "f4"))
    look(np.zeros(3, "f2"))
    assert seen == [{"block": 32}, {"block": 64}]


@pytest.mark.parametrize(
    "key", [np.array(3), np.array([3]), b"x", (1, 2), {}, float("nan"), np.float32("inf"), int, 1j]
)
def test_what_is_no_key(key):
    with pytest.raises((TypeError, ValueError), match=r"key\[0\] must be"):
        cl.tuning.tune(nothing, ONE, key=(key,))


@pytest.mark.parametrize("wrong", [False, np.bool_(False), np.array(False), 0])
def test_whatever_false_a_check_says(wrong):
    """``(x == y).all()`` is a NumPy bool, which once counted as success."""
    said = iter([wrong, True])
    tuning = cl.tuning.tune(nothing, [{"n": 1}, {"n": 2}], check=lambda _: next(said))
    assert tuning.best == {"n": 2}
    assert "check rejected the result" in str(tuning.trials[0].error)


@pytest.mark.needs("torch")
def test_a_check_that_says_what_torch_says():
    import torch

    with pytest.raises(ValueError, match="rejected the result"):
        cl.tuning.tune(nothing, ONE, check=lambda _: (torch.ones(2) == 2).all())
    assert cl.tuning.tune(nothing, ONE, check=lambda _: None).best == ONE[0]


def test_an_interrupt_in_a_check_ends_the_tuning():
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cl.tuning.tune(nothing, ONE, check=interrupted)


def test_configurations_of_two_types_are_two():
    values = [1, True, 1.0, (1, 2), (1, True)]
    tuning = cl.tuning.tune(nothing, [{"n": one} for one in values])
    assert [trial.config["n"] for trial in tuning.trials] == values
    for twice in ([{"n": 1}, {"n": 1}], [{"n": (1, 2)}, {"n": [1, 2]}], [{}, {}]):
        with pytest.raises(ValueError, match="must not appear twice"):
            cl.tuning.tune(nothing, twice)


@pytest.mark.parametrize("value", [{1: 2}, {"a": {None: 3}}, {1: 2, "b": 3}])
def test_what_json_would_give_back_otherwise(value):
    with pytest.raises(TypeError, match=r"configs\[0\]\['n'\].* must be a dict with str keys"):
        cl.tuning.tune(nothing, [{"n": value}])


def fail_to_rename(path, monkeypatch):
    real = os.rename

    def rename(source, target, **more):
        if os.fspath(target) == os.fspath(path):
            raise OSError(116, "Stale file handle", target)
        real(source, target, **more)

    monkeypatch.setattr(os, "rename", rename)


def become_newer(path, monkeypatch):
    path.write_text('{"format": "culaunch tuned configurations", "version": 2, "entries": []}')


@pytest.mark.parametrize("how", [fail_to_rename, become_newer])
def test_what_was_measured_is_not_lost_with_the_file(how, tmp_path, monkeypatch):
    path = tmp_path / "t.json"
    table = cl.tuning.TunedConfigs(path)
    monkeypatch.setattr("culaunch._tune.table._KEEP_SECONDS", 0.0)
    how(path, monkeypatch)
    before = path.read_bytes() if path.exists() else None
    with pytest.warns(cl.CacheWarning, match=r"t\.json' cannot be written: ") as said:
        tuning = cl.tuning.tune(nothing, [{"n": 1}, {"n": 2}], key=(7,), table=table)
    assert len(said) == 1, "once, and not for each round"
    assert tuning.best == {"n": 1}
    assert table[7] == {"n": 1}
    assert (path.read_bytes() if path.exists() else None) == before
    assert said[-1].filename == __file__
    assert [one.name for one in tmp_path.iterdir() if one.suffix == ".tmp"] == []


def test_what_was_not_written_is_written_when_there_is_room(tmp_path, monkeypatch):
    path = tmp_path / "t.json"
    cl.tuning.tune(nothing, [{"n": 1}], key=(1,), table=cl.tuning.TunedConfigs(path))
    table = cl.tuning.TunedConfigs(path)
    with monkeypatch.context() as patch:
        fail_to_rename(path, patch)
        with pytest.warns(cl.CacheWarning, match="cannot be written"):
            cl.tuning.tune(nothing, [{"n": 2}], key=(2,), table=table)
        assert table[2] == {"n": 2}
    cl.tuning.tune(
        nothing, [{"n": 3}], key=(3,), table=cl.tuning.TunedConfigs(path)
    )  # another process
    cl.tuning.tune(nothing, [{"n": 4}], key=(4,), table=table)
    for one in (table, cl.tuning.TunedConfigs(path)):
        assert [one[key]["n"] for key in (1, 2, 3, 4)] == [1, 2, 3, 4]
        assert len(one) == 4


def test_threads_add_to_one_table():
    """Of 360 entries about 200 were left of a table in memory."""
    table = cl.tuning.TunedConfigs()
    configs = [{"n": 1}]

    def add(first):
        for i in range(40):
            cl.tuning.tune(lambda n: None, configs, key=(first, i), table=table)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=add, args=(i,)) for i in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(before)
    assert len(table) == 160
    assert len(copy.deepcopy(table)) == 160
