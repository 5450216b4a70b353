"""Measure a cold ``load_inline`` beside those of TVM-FFI and PyTorch, for one function.

    python benchmarks/load_inline.py [--peers tvm_ffi,torch] [--rounds 3] [--json FILE]

Each build runs in its own process with an empty directory. It imports its modules before the clock
starts. ``next`` is a second library in the same directory: culaunch then has the object file that
all its libraries share. ``cpu`` is the processor time of the process and its compilers, which other
work on the machine changes little. ``lines`` counts the preprocessed C++ lines of an empty source.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ADD_ONE = """
void add_one(TENSOR x, TENSOR y) {
  const float* from = static_cast<const float*>(x.data_ptr());
  float* to = static_cast<float*>(y.data_ptr());
  for (int64_t i = 0; i < x.size(0); ++i) to[i] = from[i] + 1;
}
"""
WORKER = """
import json, resource, sys, time
peer, source, place = sys.argv[1:]
if peer == "culaunch":
    import tvm_ffi.cpp
    import culaunch
    load = lambda name: culaunch.cpp.load_inline(
        name, source, functions="add_one", build_directory=place)
elif peer == "tvm_ffi":
    import tvm_ffi.cpp
    load = lambda name: tvm_ffi.cpp.load_inline(
        name, cpp_sources=source, functions="add_one", build_directory=place + "/" + name)
else:
    from torch.utils.cpp_extension import load_inline
    load = lambda name: load_inline(name, source, functions="add_one", build_directory=place)
def cpu():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
took = {}
for which, name in (("", "first"), ("next_", "second")):
    start, cpu_start = time.perf_counter(), cpu()
    load(name)
    took |= {which + "cpu_s": cpu() - cpu_start, which + "wall_s": time.perf_counter() - start}
print(json.dumps(took))
"""
TENSORS = {"culaunch": "tvm::ffi::TensorView", "tvm_ffi": "tvm::ffi::TensorView"}


def main() -> int:
    parser = argparse.ArgumentParser(description="A cold build of inline C++.")
    parser.add_argument("--peers", default="tvm_ffi,torch", help="peers to measure")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    peers = ["culaunch", *filter(None, options.peers.split(","))]
    found: dict[str, dict[str, float]] = {}
    for _ in range(options.rounds):
        for peer in peers:  # by turns
            took = build(peer)
            before = found.get(peer, took)
            found[peer] = {name: min(took[name], before[name]) for name in took}
    for peer, row in found.items():
        if peer in TENSORS:
            row["lines"] = preprocessed_lines(peer)
        lines = f"{row['lines']:9.0f} lines" if "lines" in row else ""
        times = (
            f"{which}cpu {row[name + 'cpu_s']:6.2f} s  wall {row[name + 'wall_s']:6.2f} s"
            for which, name in (("", ""), ("next: ", "next_"))
        )
        print(f"{peer:9} {'  '.join(times)}  {lines}")
    if options.json:
        options.json.write_text(json.dumps(found))
    return 0


def build(peer: str) -> dict[str, float]:
    """Build and load the function twice, in a process and a directory of its own."""
    source = ADD_ONE.replace("TENSOR", TENSORS.get(peer, "torch::Tensor"))
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [sys.executable, "-c", WORKER, peer, source, place],
            check=True,
            capture_output=True,
            text=True,
        )
    took: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return took


def preprocessed_lines(peer: str) -> int:
    """Count the lines that a compiler reads for the prefix that a peer adds to a source."""
    import tvm_ffi.libinfo

    import culaunch as cl
    from culaunch._inline.cuda_header import cuda_include_dir
    from culaunch._inline.texts import UNIT
    from culaunch._inline.toolchain import find_cxx

    text = UNIT.format(file="/dev/null", exports="")
    if peer == "tvm_ffi":
        names = ("container/tensor", "dtype", "error", "extra/c_env_api", "function")
        text = "".join(f"#include <tvm/ffi/{name}.h>\n" for name in names)
    includes = [
        str(cl.cpp.include_dir()),
        str(cuda_include_dir()),
        tvm_ffi.libinfo.find_include_path(),
    ]
    done = subprocess.run(
        [*find_cxx(), "-std=c++17", "-E", "-P", *(f"-I{one}" for one in includes), "-xc++", "-"],
        check=True,
        capture_output=True,
        text=True,
        input=text,
    )
    return done.stdout.count("\n")


if __name__ == "__main__":
    sys.exit(main())
