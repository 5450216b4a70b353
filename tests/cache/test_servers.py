"""Remote caches on real servers on the loopback: HTTP, and an object store's S3."""

import contextlib
import functools
import http.server
import os
import socket
import subprocess
import sys
import threading
import warnings

import pytest

import culaunch as cl

MOTO = """
import boto3, sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
url = f"http://127.0.0.1:{server._server.server_port}"
boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="x",
             aws_secret_access_key="y").create_bucket(Bucket="kernels")
print(url, flush=True)
sys.stdin.read()
"""
USER = """
import sys
import culaunch as cl
cache = cl.cache.Cache(sys.argv[1])
made = []
def image(n):
    made.append(n)
    return cl.Image(f".version 8.0\\n// {n}\\n".encode())
for n in range(20):
    cache.get_or_make(f"{n:064x}", lambda: image(n))
print(len(made))
"""


@contextlib.contextmanager
def s3_server():
    """Start an S3 server; yield the environment of those who use it."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", MOTO],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        yield {
            **os.environ,
            "CULAUNCH_CACHE_REMOTE": "s3://kernels/cache",
            "FSSPEC_S3_ENDPOINT_URL": process.stdout.readline().strip(),
            "FSSPEC_S3_KEY": "x",
            "FSSPEC_S3_SECRET": "y",
            "CULAUNCH_CACHE_REMOTE_TIMEOUT": "60",
        }
    finally:
        process.communicate("")


@pytest.mark.slow
@pytest.mark.needs("moto", "s3fs", "boto3", "flask")
def test_s3(tmp_path):
    def run(machine, *command):
        command = command or ("-c", USER, str(tmp_path / machine))
        return subprocess.run(
            [sys.executable, *command], check=True, capture_output=True, text=True,
            env={**environment, "CULAUNCH_CACHE_DIR": str(tmp_path / machine)}, timeout=120,
        )  # fmt: skip

    with s3_server() as environment:
        first, second = run("one"), run("two")
        assert (first.stdout, first.stderr) == ("20\n", "")
        assert (second.stdout, second.stderr) == ("0\n", "")
        said = run("three", "-m", "culaunch", "cache", "sync").stdout
        assert said == "pulled 20 and pushed 0 entries, s3://kernels/cache\n"


@contextlib.contextmanager
def http_server(handler):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Midway(Quiet):
    """Promises more than it sends, and hangs up."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"culcache" * 100)


@pytest.mark.needs("aiohttp", "fsspec")
def test_http_is_read(tmp_path, machine, image, key, never, shared):
    first = machine(shared)
    first.get_or_make(key(1), lambda: image(1))
    assert first.remote.flush()
    handler = functools.partial(Quiet, directory=str(tmp_path / "shared"))
    with http_server(handler) as url:
        second = machine(url)
        assert second.get_or_make(key(1), never) == image(1)
        assert second.get_or_make(key(2), lambda: image(2)) == image(2), "and 404 is no failure"
        assert second._server.fetch(f"{key(2)}.entry") is None
        assert not second._server.is_stopped


@pytest.mark.needs("aiohttp", "fsspec")
def test_http_that_dies_midway(machine, image, key):
    with http_server(Midway) as url, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        cache = machine(url)
        for number in range(3):
            assert cache.get_or_make(key(number), lambda number=number: image(number))
    ours = [one for one in said if one.category is cl.CacheWarning]
    assert len(ours) == 1
    assert "this process no longer uses it" in str(ours[0].message)


@pytest.mark.needs("aiohttp", "fsspec")
def test_a_server_that_says_nothing(machine, image, key):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        cache = machine(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.2)
        with pytest.warns(cl.CacheWarning, match=r"no answer in 0.2 s"):
            cache.get_or_make(key(1), lambda: image(1))
        assert cache.get_or_make(key(2), lambda: image(2)) == image(2)


@pytest.mark.needs("aiohttp", "fsspec")
def test_a_port_where_nobody_listens(machine, image, key):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    cache = machine(f"http://127.0.0.1:{port}")
    with pytest.warns(cl.CacheWarning, match="this process no longer uses it"):
        assert cache.get_or_make(key(1), lambda: image(1)) == image(1)
