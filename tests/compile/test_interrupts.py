"""Ctrl-C while NVRTC compiles: a KeyboardInterrupt, also with an NVRTC that takes the signal."""

import signal
import subprocess
import sys

import pytest

# As the front ends of compilers do it, NVRTC's up to 13.0 among them.
TAKES_SIGNALS = """
#include <signal.h>
#include <stdlib.h>
static void leave(int number) { (void)number; exit(4); }
static void (*interrupt)(int), (*terminate)(int);
int compile(void) {
  interrupt = signal(SIGINT, SIG_IGN);
  if (interrupt != SIG_IGN) signal(SIGINT, leave);
  terminate = signal(SIGTERM, leave);
  return signal(SIGUSR1, leave) == SIG_ERR;
}
void compiled(void) {
  signal(SIGINT, interrupt);
  signal(SIGTERM, terminate);
}
"""
USE = """
import ctypes, os, signal, sys
from culaunch._core import keep_signal_handlers

def heard(number, frame):
    print("heard", signal.Signals(number).name)

library = ctypes.CDLL(sys.argv[1])
if sys.argv[2] == "keep":
    assert keep_signal_handlers(sys.argv[1])
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, heard)
for _ in range(2):
    library.compile()
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(os.getpid(), number)
    library.compiled()
    os.kill(os.getpid(), signal.SIGINT)
os.kill(os.getpid(), signal.SIGUSR1)
"""


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("linking", ["-Wl,-z,lazy", "-Wl,-z,now,-z,relro"])
def test_a_library_no_longer_takes_the_signals(tmp_path, linking):
    source, library = tmp_path / "takes.c", tmp_path / "takes.so"
    source.write_text(TAKES_SIGNALS)
    subprocess.run(["gcc", "-shared", "-fPIC", linking, "-o", library, source], check=True)
    codes = {}
    for word in ("keep", "leave"):
        done = subprocess.run(
            [sys.executable, "-c", USE, library, word],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        codes[word] = (done.returncode, done.stdout.splitlines(), done.stderr)
    # Other signals are its own, before and after.
    assert codes["keep"] == (4, ["heard SIGINT", "heard SIGTERM", "heard SIGINT"] * 2, "")
    assert codes["leave"] == (4, [], "")


def test_a_library_that_is_not_loaded(tmp_path):
    from culaunch._core import keep_signal_handlers

    with pytest.raises(ValueError, match=r"absent\.so is not loaded"):
        keep_signal_handlers(str(tmp_path / "absent.so"))
    with pytest.raises(TypeError):
        keep_signal_handlers(3)


COMPILE = """
import culaunch as cl

# Constants that the front end computes, for a second or more.
sums = "".join(
    f"template <int M> struct S{i} {{ static constexpr int sum(int n) {{ int s = 0;"
    f"for (int k = 0; k < n; k++) s += k % (M + 1); return s; }}"
    f"static constexpr int value = sum(20000); }}; constexpr int sum{i} = S{i}<{i}>::value;"
    for i in range(100)
)
# First everything is imported: an interrupt there would reach Python's own exec.
cl.compile("__global__ void k() {}", arch="compute_80")
print("compiling", flush=True)
try:
    cl.compile(sums + "__global__ void k(int* x) { *x = sum0; }", arch="compute_80")
    print("compiled")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
def test_ctrl_c_is_a_keyboard_interrupt(tmp_path, monkeypatch):
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(tmp_path))
    # A shell's background job ignores the signal, and so would what it starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", COMPILE], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        assert process.stdout.readline() == "compiling\n"
        # In the front end, which is what takes the time.
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.4)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (0, "interrupted\n", "")
