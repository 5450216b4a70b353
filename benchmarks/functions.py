"""Measure the cost of a function, beside a bare launcher and beside the same code by hand.

One process, bursts interleaved over all contenders, as in launch_overhead.py. A contender that is
missing or fails is named with the reason and does not stop the others.

    python benchmarks/functions.py
    python benchmarks/functions.py --host-only
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np
from overhead.bars import Bar
from overhead.bench import Bench
from overhead.build import build_library, cuda_include
from overhead.cases import BLOCK, GRID, MAIN
from overhead.machine import describe
from overhead.timing import Plan, Trial, difference, python_burst, run
from overhead.transformer import Transformer

import culaunch as cl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overhead.timing import Burst

C_LOOP = "C loop"
LAUNCHER = "launcher alone"
ONE = "function of one launch, output given"
ALLOCATES = "function that checks and allocates"
JAX_DOOR = "ten of them in a program of JAX"
JAX_TVM = "ten of them in a program of JAX, exported, by jax-tvm-ffi"
EXPORTED = "the same function, exported as a library"
BY_HAND = "the same by hand in C++ over TVM-FFI"
IN_PYTHON = "the same in Python over the launcher"
TEN = "function of ten launches"
TEN_C = "C loop over the ten"
TORCH_OP = "torch operator around the function, called eagerly"
CUSTOM_OP = "torch.library.custom_op around the same in Python"
FIRST = "first call of a kind"
BLOCK_FUNCTION = "transformer block as one function"
BLOCK_TRITON = "the same block through Triton's jit[grid]"
LAUNCHES = 10


class Functions:
    """The functions that are measured, over the kernel of three pointers and an int."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.kernel = kernel = cl.load(bench.image)[MAIN.mangled]
        self.number = MAIN.int_values[0]

        @cl.function
        def one(x: Any, y: Any, z: Any, n: int) -> None:
            kernel[GRID, BLOCK](x, y, z, n)

        @cl.function
        def allocates(x: Any, n: int) -> Any:
            cl.check(x.is_contiguous(), "x must be contiguous")
            cl.check(x.dtype == "float32", "x must be float32")
            y = cl.empty_like(x)
            kernel[GRID, BLOCK](y, x, x, n)
            return y

        @cl.function
        def ten(x: Any, y: Any, z: Any, n: int) -> None:
            for _ in range(LAUNCHES):
                kernel[GRID, BLOCK](x, y, z, n)

        self.one, self.allocates, self.ten = one, allocates, ten

    def in_python(self, x: Any, n: int) -> Any:
        """Do the same as ``allocates``, in the usual code without functions."""
        import torch

        if not x.is_contiguous():
            raise ValueError("x must be contiguous")
        if x.dtype != torch.float32:
            raise ValueError("x must be float32")
        y = torch.empty_like(x)
        self.kernel[GRID, BLOCK](y, x, x, n)
        return y

    @functools.cached_property
    def transformer(self) -> Transformer:
        """The block of twelve launches; it needs Triton."""
        return Transformer(self.bench)

    @functools.cached_property
    def given(self) -> dict[str, Any]:
        """The arguments of the launcher."""
        x, y, z = self.bench.tensors[:3]
        return {"x": x, "y": y, "z": z, "n": self.number}


def c_loop(made: Functions) -> Burst:
    return made.bench.c_loop(MAIN, made.bench.buffers)


def c_loop_of_ten(made: Functions) -> Burst:
    burst = c_loop(made)
    return lambda count: burst(LAUNCHES * count)


def launcher(made: Functions) -> Burst:
    call = made.kernel.configure(grid=GRID, block=BLOCK)
    burst = python_burst("call(x, y, z, n)", call=call, **made.given)
    made.bench.check(MAIN, burst, made.bench.tensor_pointers())
    return burst


def one_launch(made: Functions) -> Burst:
    burst = python_burst("call(x, y, z, n)", call=made.one, **made.given)
    made.one(*made.given.values())  # traced
    made.bench.check(MAIN, burst, made.bench.tensor_pointers())
    return burst


def ten_launches(made: Functions) -> Burst:
    made.ten(*made.given.values())
    return python_burst("call(x, y, z, n)", call=made.ten, **made.given)


def allocates(made: Functions) -> Burst:
    return _of_one_array(made.allocates, made)


def exported(made: Functions) -> Burst:
    import tvm_ffi

    made.allocates(made.bench.tensors[0], made.number)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "liballocates.so")
        cl.ship.export(made.allocates, path)
        module = tvm_ffi.load_module(str(path))
    return _of_one_array(module.allocates, made)


def in_python(made: Functions) -> Burst:
    return _of_one_array(made.in_python, made)


def by_hand(made: Functions) -> Burst:
    import tvm_ffi

    # TVM-FFI's launcher calls the driver by its symbols, which must be in the process.
    ctypes.CDLL(made.bench.driver, mode=ctypes.RTLD_GLOBAL)
    module = tvm_ffi.load_module(str(_by_hand_library()))
    module.load(made.bench.image)
    return _of_one_array(module.allocates, made)


def torch_op(made: Functions) -> Burst:
    return _of_one_array(
        cl.frameworks.torch_op("culaunch_benchmark::allocates", made.allocates), made
    )


def custom_op(made: Functions) -> Burst:
    import torch

    def allocates(x: torch.Tensor, n: int) -> torch.Tensor:
        return made.in_python(x, n)  # type: ignore[no-any-return]

    allocates.__annotations__ = {"x": torch.Tensor, "n": int, "return": torch.Tensor}
    made_op = torch.library.custom_op("culaunch_benchmark::by_hand", mutates_args=())(allocates)
    return _of_one_array(made_op, made)


def first_call(made: Functions) -> Burst:
    """Trace again at each call: its clock runs from the call to its end."""

    def burst(count: int) -> int:
        arguments = (made.bench.tensors[0], made.number)
        samples = []
        for _ in range(min(count, 8)):
            made.allocates._clear()  # noqa: SLF001
            start = perf_counter_ns()
            made.allocates(*arguments)
            samples.append(perf_counter_ns() - start)
        return int(median(samples)) * count

    return burst


def jax_door(made: Functions) -> Burst:
    """Ten calls in one program of JAX, through ``scale.jax``."""
    # The kernel's pointers are not to const, so mutates= says that it writes only its output.
    function = cl.function(mutates=())(made.allocates.__wrapped__)
    return _jax_program(lambda x: function.jax(x, made.number))


def jax_tvm_ffi(made: Functions) -> Burst:
    """Export the same function, as a target of jax-tvm-ffi."""
    import jax
    import jax_tvm_ffi as bridge
    import tvm_ffi

    made.allocates(made.bench.tensors[0], made.number)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "libtarget.so")
        cl.ship.export(made.allocates, path)
        module = tvm_ffi.load_module(str(path))
    platform = "gpu" if jax.default_backend() == "gpu" else "cpu"
    words = ["rets", "args", "attrs.n"]
    bridge.register_ffi_target("allocates", module.allocates_into, words, platform=platform)

    def call(x: Any) -> Any:
        result = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.ffi.ffi_call("allocates", result)(x, n=np.int64(made.number))

    return _jax_program(call)


def _jax_program(call: Callable[[Any], Any]) -> Burst:
    import jax

    def ten(x: Any) -> Any:
        for _ in range(LAUNCHES):
            x = call(x)
        return x

    x = jax.numpy.zeros(1024, "float32")
    program = jax.jit(ten)
    if program(x).shape != x.shape:
        raise RuntimeError("wrong result")
    return python_burst("call(x).block_until_ready()", call=program, x=x)


def _transformer(name: str, made: Functions) -> Burst:
    return getattr(made.transformer, name)()  # type: ignore[no-any-return]


def _of_one_array(call: Any, made: Functions) -> Burst:
    result = call(made.bench.tensors[0], made.number)
    if tuple(result.shape) != tuple(made.bench.tensors[0].shape):
        raise RuntimeError(f"wrong result, with shape {result.shape}")
    return python_burst("call(x, n)", call=call, x=made.bench.tensors[0], n=made.number)


def _by_hand_library() -> Path:
    """Compile the handwritten version: checks, the output, the stream, the launch."""
    import tvm_ffi

    root = Path(tvm_ffi.__file__).parent
    flags = ["-std=c++17", "-w", f"-I{root / 'include'}", f"-I{cuda_include('crt/host_config.h')}",
             "-DTVM_FFI_CUBIN_LAUNCHER_USE_DRIVER_API=1"]  # fmt: skip
    linked = [f"-L{root / 'lib'}", "-ltvm_ffi", f"-Wl,-rpath,{root / 'lib'}"]
    return build_library("by_hand.so", {"by_hand.cpp": _by_hand_source()}, flags, linked)


def _by_hand_source() -> str:
    return f"""
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/cuda/cubin_launcher.h>
#include <tvm/ffi/function.h>
#include <memory>
namespace ffi = tvm::ffi;
static std::unique_ptr<ffi::CubinModule> module;
static void load(ffi::Bytes image) {{ module = std::make_unique<ffi::CubinModule>(image); }}
static ffi::Tensor allocates(ffi::TensorView x, int64_t n) {{
  static auto kernel = module->GetKernel("{MAIN.mangled}");
  if (!x.IsContiguous()) TVM_FFI_THROW(ValueError) << "x must be contiguous";
  if (x.dtype().code != kDLFloat || x.dtype().bits != 32) {{
    TVM_FFI_THROW(TypeError) << "x must be float32";
  }}
  if (n != static_cast<int32_t>(n)) TVM_FFI_THROW(ValueError) << "n must fit 32 bits";
  DLDevice device = x.device();
  ffi::Tensor y = ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, x.shape(), x.dtype(), device);
  void* out = y.data_ptr();
  void* in = x.data_ptr();
  int number = static_cast<int>(n);
  void* arguments[] = {{&out, &in, &in, &number}};
  auto stream = static_cast<ffi::cuda_api::StreamHandle>(
      TVMFFIEnvGetStream(device.device_type, device.device_id));
  TVM_FFI_CHECK_CUBIN_LAUNCHER_CUDA_ERROR(
      kernel.Launch(arguments, ffi::dim3({GRID}), ffi::dim3({BLOCK}), stream));
  return y;
}}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(load, load);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(allocates, allocates);
"""


CONTENDERS: dict[str, Callable[[Functions], Burst]] = {
    C_LOOP: c_loop,
    LAUNCHER: launcher,
    ONE: one_launch,
    ALLOCATES: allocates,
    EXPORTED: exported,
    BY_HAND: by_hand,
    IN_PYTHON: in_python,
    TEN: ten_launches,
    TEN_C: c_loop_of_ten,
    TORCH_OP: torch_op,
    CUSTOM_OP: custom_op,
    FIRST: first_call,
    JAX_DOOR: jax_door,
    JAX_TVM: jax_tvm_ffi,
    BLOCK_FUNCTION: functools.partial(_transformer, "as_function"),
    BLOCK_TRITON: functools.partial(_transformer, "as_triton"),
}


def bars(trials: list[Trial]) -> list[Bar]:
    """Compare the measurements with the promises."""
    found = {trial.contender: trial.median for trial in trials}

    def over(a: str, b: str) -> float | None:
        return found[a] / found[b] if a in found and b in found else None

    def more(a: str, b: str) -> float | None:
        return difference(trials, a, b, MAIN.key)

    return [
        Bar(f"{LAUNCHER} / {C_LOOP}", 1.10, "x", over(LAUNCHER, C_LOOP)),
        Bar(f"{ONE}, over the {LAUNCHER}", 80, "ns", more(ONE, LAUNCHER)),
        Bar(f"{ALLOCATES} / {BY_HAND}", 0.82, "x", over(ALLOCATES, BY_HAND)),
        Bar(f"{TEN} / {TEN_C}", 1.04, "x", over(TEN, TEN_C)),
        Bar("torch operator, over the function itself", 1500, "ns", more(TORCH_OP, ALLOCATES)),
        Bar(f"torch operator / {CUSTOM_OP}", 0.40, "x", over(TORCH_OP, CUSTOM_OP)),
        Bar(FIRST, 3e6, "ns", found.get(FIRST)),
        Bar(f"{BLOCK_FUNCTION} / Triton", 0.25, "x", over(BLOCK_FUNCTION, BLOCK_TRITON)),
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    try:
        bench = Bench(host_only=options.host_only)
    except Exception as error:  # noqa: BLE001 - it cannot run without a driver or a compiler
        print(f"cannot start: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    # The queue of launches is 1024 deep: ten launches each, and twelve, stay below it.
    plan = Plan(burst=60, warmup=12, rounds=400)
    if options.quick:
        plan = Plan(burst=25, warmup=4, rounds=3)
    made = Functions(bench)
    trials: list[Trial] = []
    missing: dict[str, str] = {}
    for name, make in CONTENDERS.items():
        try:
            trials.append(Trial(name, MAIN.key, make(made)))
        except Exception as error:  # noqa: BLE001, PERF203 - a missing peer is named
            missing[name] = f"{type(error).__name__}: {error}"
    for trial, reason in run(trials, plan, bench.synchronize):
        missing[trial.contender] = reason
    found = {trial.contender: trial.median for trial in trials}
    held = bars(trials)
    machine = describe(bench)
    print(*machine.values(), sep="\n") if isinstance(machine, dict) else print(machine)
    print(
        f"{plan.rounds} interleaved bursts of {plan.burst} calls; nanoseconds per call, medians\n"
    )
    for name, value in found.items():
        print(f"{name:56}{value:12.0f}")
    print("\nBars (medians of this run)")
    for bar in held:
        value = "-" if bar.measured is None else f"{bar.measured:.3f}"
        verdict = {True: "met", False: "NOT MET", None: "not measured"}[bar.met]
        print(f"  {bar.name:66} <= {bar.limit:g} {bar.unit}{value:>12} {bar.unit}  {verdict}")
    if options.host_only:
        print("  (on the null driver a C loop costs nothing: its bars are for a GPU)")
    for name, reason in missing.items():
        print(f"not measured: {name}: {reason}")
    if options.json:
        bar_rows = [{**vars(bar), "met": bar.met} for bar in held]
        report = {"schema": 1, "medians_ns": found, "bars": bar_rows, "missing": missing}
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--host-only",
        action="store_true",
        help="measure only the host's cost, on the null driver; needs no GPU",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="measure little, to see that it runs; the numbers mean nothing",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the measurements to this file"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
