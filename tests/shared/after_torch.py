"""Python programs in forks of one process that has imported PyTorch, which takes two seconds.

Each program has a process of its own, as if ``python WORDS`` had started it: main module, paths,
environment, output and exit code. culaunch is imported by the program.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path


class AfterTorch:
    """Starts the process with the first program, and ends it on `close`."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def run(self, words, *, cwd=None, env=None, timeout=300):
        """Run ``python WORDS``; return what ``subprocess.run`` returns, with text."""
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        with tempfile.TemporaryDirectory() as folder:
            outputs = [os.path.join(folder, name) for name in ("stdout", "stderr")]
            request = {
                "words": [*map(str, words)], "cwd": str(cwd or os.getcwd()), "outputs": outputs,
                "env": dict(os.environ if env is None else env), "timeout": timeout,
            }  # fmt: skip
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            texts = [Path(output).read_text() for output in outputs]
        return subprocess.CompletedProcess(words, code, *texts)

    def close(self) -> None:
        if self._server is not None:
            self._server.communicate()


def serve():
    """Fork for each line of the input; return the words of a program in its process."""
    with contextlib.suppress(ImportError):
        import torch  # noqa: F401 - for the programs
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            return become(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return None


def become(words, cwd, env, outputs, timeout):
    """Be as a new process is; return the words after the options of the interpreter."""
    for number, path in enumerate((os.devnull, *outputs)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    signal.alarm(timeout)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[1:1] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    while words[0] == "-W":
        warnings.simplefilter(words[1])
        words = words[2:]
    return words


def run(words):
    """Run a file, a module or a text as the main module."""
    kind, *rest = words
    if kind not in ("-m", "-c"):
        sys.argv, sys.path[0] = words, os.path.dirname(os.path.abspath(kind))
        runpy.run_path(kind, run_name="__main__")
    elif kind == "-m":
        sys.argv, sys.path[0] = rest, os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        exec(compile(rest[0], "<string>", "exec"), vars(sys.modules["__main__"]))


if __name__ == "__main__":
    program = serve()
    if program is not None:
        run(program)
