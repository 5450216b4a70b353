"""A cache behind a cache: read through, written behind, and never the reason of a failure."""

import os
import pickle
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import culaunch as cl

RACER = str(Path(__file__).parents[1] / "compile" / "racer.py")


def path_of(shared, key):
    return Path(shared.removeprefix("file://")) / key[:2] / f"{key}.entry"


def caught(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in found]


def test_what_one_machine_compiles_the_others_have(shared, machine, image, key, never):
    first, second, third = machine(shared), machine(shared), machine(shared)
    assert first.get_or_make(key(1), lambda: image(1)) == image(1)
    assert first.remote.flush()
    assert path_of(shared, key(1)).read_bytes() == Path(first.path, f"{key(1)}.entry").read_bytes()
    found = second.get_or_make(key(1), never)
    assert (found, found.names) == (image(1), {"k": "k1"})
    # It is the second's own from now on.
    path_of(shared, key(1)).unlink()
    assert second.get_or_make(key(1), never) == image(1)
    assert third.lookup(key(1)) is None, "a look alone does not ask the server"
    assert second.info().remote == shared


def test_a_machine_whose_own_cache_cannot_be_used(shared, machine, image, key, never, tmp_path):
    first, second = machine(shared), machine(shared)
    first.get_or_make(key(1), lambda: image(1))
    assert first.remote.flush()
    Path(second.path).write_text("no directory")
    assert "it is not used" in caught(lambda: second.get_or_make(key(1), never))[0]


@pytest.mark.slow
def test_processes_of_two_machines_compile_each_key_once_a_machine(shared, tmp_path):
    keys, start = 12, tmp_path / "start"
    logs = [tmp_path / "log0", tmp_path / "log1"]
    running = []
    for number in range(16):
        which = number % 2
        command = [sys.executable, RACER, str(tmp_path / f"machine{which}"), str(logs[which])]
        environment = {**os.environ, "CULAUNCH_CACHE_REMOTE": shared}
        command += [str(start), str(keys)]
        running.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE))
    start.touch()
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert errors == b""
    for log in logs:
        made = log.read_text().split() if log.exists() else []
        assert len(made) == len(set(made)), "each key once on a machine"
    on_server = list(Path(shared.removeprefix("file://")).rglob("*.entry"))
    assert len(on_server) == keys


def test_a_process_that_ends_writes_what_it_compiled(shared, tmp_path, key):
    program = (
        "import culaunch as cl, sys\n"
        "cache = cl.cache.Cache(sys.argv[1], remote=sys.argv[2])\n"
        "for n in range(40):\n"
        "    cache.store(f'{n:064x}', cl.Image(b'.version 8.0\\n//' + b'x' * 10000))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "c"), shared], check=True)
    assert all(path_of(shared, key(number)).exists() for number in range(40))
    assert list(Path(shared.removeprefix("file://")).rglob("*tmp*")) == []


def test_a_lying_server_is_not_believed(bad, machine, image, key):
    first, second = machine("bad://lying"), machine("bad://lying")
    first.get_or_make(key(1), lambda: image(1))
    assert first.remote.flush()
    made = []

    def make():
        made.append(1)
        return image(1)

    found = []
    said = caught(lambda: found.append(second.get_or_make(key(1), make)))
    assert found == [image(1)]
    assert made == [1]
    assert len(said) == 1
    assert "remote cache 'bad://lying': the entry" in said[0]
    # The server is asked for other keys all the same.
    second.get_or_make(key(2), lambda: image(2))
    assert [what for what, _ in bad.CALLS].count("read") == 3


@pytest.mark.parametrize("kind", ["other key", "empty", "flipped", "garbage"])
def test_what_is_not_the_entry_is_refused(kind, shared, machine, image, key):
    first, second = machine(shared), machine(shared)
    first.get_or_make(key(1), lambda: image(1))
    first.get_or_make(key(2), lambda: image(2))
    assert first.remote.flush()
    path = path_of(shared, key(1))
    entry = bytearray(path.read_bytes())
    entry[70] ^= 4
    wrong = {
        "other key": path_of(shared, key(2)).read_bytes(),
        "empty": b"",
        "flipped": bytes(entry),
        "garbage": os.urandom(300),
    }
    path.write_bytes(wrong[kind])
    found = []
    said = caught(lambda: found.append(second.get_or_make(key(1), lambda: image(1))))
    assert found == [image(1)]
    assert len(said) == 1
    assert "compiling again" in said[0]
    # A valid entry replaces it.
    assert second.remote.flush()
    assert path.read_bytes() == Path(first.path, f"{key(1)}.entry").read_bytes()


@pytest.mark.parametrize("kind", ["slow", "dead"])
def test_a_server_that_does_not_answer_costs_one_time_out(kind, bad, machine, image, key):
    cache = machine(f"bad://{kind}", timeout=0.1)
    said = []
    for number in range(20):
        said += caught(lambda number=number: cache.get_or_make(key(number), lambda: image(number)))
    assert len(said) == 1
    assert {"slow": "no answer in 0.1 s", "dead": "connection was reset"}[kind] in said[0]
    assert "this process no longer uses it" in said[0]
    assert len(bad.CALLS) == 1
    assert cache.remote.flush()
    assert cache.info().entries == 20


def test_a_server_that_dies_midway(bad, machine, image, key):
    cache = machine("bad://midway")
    said = []
    for number in range(8):
        said += caught(lambda number=number: cache.get_or_make(key(number), lambda: image(number)))
        said += caught(lambda: cache.remote.flush())
    assert len([one for one in said if "connection was reset" in one]) == 1
    assert len(bad.CALLS) == 4
    assert cache.info().entries == 8


def test_a_server_that_may_not_be_written_to_is_read(bad, machine, image, key):
    cache = machine("bad://readonly")
    said = caught(lambda: (cache.store(key(1), image(1)), cache.remote.flush()))
    assert len(said) == 1
    assert "it is used read-only" in said[0]
    assert caught(lambda: (cache.store(key(2), image(2)), cache.remote.flush())) == []
    assert cache._server.fetch(f"{key(1)}.entry") is None
    assert bad.CALLS[-1] == ("read", "readonly")
    quiet = machine("bad://readonly", write=False)
    before = len(bad.CALLS)
    quiet.store(key(1), image(1))
    assert quiet.remote.flush()
    assert len(bad.CALLS) == before


def test_a_slow_server_does_not_hold_up_who_compiles(bad, machine, image, key):
    bad.GATE["sleep"] = 0.05
    try:
        cache = machine("bad://slow", timeout=5)
        start = time.process_time()
        for number in range(5):
            cache.store(key(number), image(number))
        assert len([what for what, _ in bad.CALLS if what == "write"]) < 5
        assert time.process_time() - start < 3
        assert cache.remote.flush()
        assert len(cache._server.list_keys()) == 5
    finally:
        bad.GATE["sleep"] = 30.0


def test_push_pull(shared, machine, image, key, tmp_path):
    alone = cl.cache.Cache(tmp_path / "machine1", remote=False)
    for number in range(5):
        alone.store(key(number), image(number))
    with pytest.raises(ValueError, match="has no remote cache"):
        alone.push()
    first, second = machine(shared), machine(shared)
    assert (first.push(), first.push()) == (5, 0)
    assert second.pull() == 5
    assert [second.lookup(key(number)) for number in range(5)] == [image(n) for n in range(5)]
    assert second.pull() == 0


def test_push_to_what_fails_says_so(bad, machine, image, key):
    cache = machine("bad://dead")
    cache.store(key(1), image(1))
    said = []
    with pytest.raises(OSError, match="cannot be listed"):
        said += caught(cache.push)
    with pytest.raises(PermissionError, match="read-only"):
        machine("bad://good", write=False).push()


def test_the_environment_says_which(shared, monkeypatch, tmp_path):
    assert cl.cache.Cache(tmp_path).remote is None
    monkeypatch.setenv("CULAUNCH_CACHE_REMOTE", shared)
    monkeypatch.setenv("CULAUNCH_CACHE_REMOTE_TIMEOUT", "2.5")
    assert cl.cache.Cache(tmp_path).remote == cl.cache.RemoteCache(shared, timeout=2.5)
    assert cl.cache.Cache(tmp_path, remote=False).remote is None
    monkeypatch.setenv("CULAUNCH_CACHE_REMOTE_TIMEOUT", "soon")
    with pytest.warns(cl.CacheWarning, match=r"no remote cache is used.*'soon'"):
        assert cl.cache.Cache(tmp_path).remote is None
    monkeypatch.setenv("CULAUNCH_CACHE_REMOTE_TIMEOUT", "1")
    # A mistyped key must not disable the check of signatures.
    monkeypatch.setenv("CULAUNCH_CACHE_REMOTE_KEYS", "RWoops")
    with pytest.warns(cl.CacheWarning, match="no remote cache is used"):
        assert cl.cache.Cache(tmp_path).remote is None


def test_a_kind_of_url_that_nothing_serves(machine, image, key):
    pytest.importorskip("fsspec")
    cache = machine("nosuch://bucket")
    said = caught(lambda: cache.get_or_make(key(1), lambda: image(1)))
    assert len(said) == 1
    assert "nosuch" in said[0]


def test_it_crosses_to_workers(shared, tmp_path):
    cache = cl.cache.Cache(tmp_path, remote=cl.cache.RemoteCache(shared, timeout=2))
    there = pickle.loads(pickle.dumps(cache))
    assert there.remote == cache.remote
    assert pickle.loads(pickle.dumps(cache)) is there, "one object in a process"
    assert hash(there.remote) == hash(cache.remote)


def test_a_password_is_not_shown():
    remote = cl.cache.RemoteCache("https://me:secret@host/path?token=abc")
    assert repr(remote) == "<culaunch.cache.RemoteCache 'https://host/path'>"
    assert not remote._server.is_written


def test_mistakes(tmp_path):
    for url in (None, 3, b"file:///x"):
        with pytest.raises(TypeError, match="url must be a str"):
            cl.cache.RemoteCache(url)
    for url in ("", "bucket", "s3:/bucket", "s3://", "s3://a\0b", "/shared"):
        with pytest.raises(ValueError, match="url must be a URL such as"):
            cl.cache.RemoteCache(url)
    for timeout in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="timeout must be a positive number"):
            cl.cache.RemoteCache("s3://b", timeout=timeout)
    with pytest.raises(TypeError, match="write must be True or False"):
        cl.cache.RemoteCache("s3://b", write="no")
    with pytest.raises(TypeError, match="keys must be public keys"):
        cl.cache.RemoteCache("s3://b", keys=3)
    with pytest.raises(ValueError, match="neither a minisign public key nor a file"):
        cl.cache.RemoteCache("s3://b", keys="RW" + "A" * 54)
    with pytest.raises(FileNotFoundError):
        cl.cache.RemoteCache("s3://b", signing_key=tmp_path / "none")
    with pytest.raises(TypeError, match=r"remote must be a URL, a .*RemoteCache, or False"):
        cl.cache.Cache(tmp_path, remote=True)
