"""PyTorch's own kernels through Inductor, on a GPU.

`python inductor_program.py FOLDER triton|installed` prints a digest of each result, and writes the
code that Inductor generates to the folder, one file for each region.
"""

import hashlib
import re
import sys
import time
import zipfile
from pathlib import Path

import pytorchs_kernels
import torch
import torch._inductor.config
import triton
from torch._inductor.utils import run_and_get_code
from torch.library import triton_op, wrap_triton

N = 1000
FOLDER = Path(sys.argv[1])
PACKAGE = FOLDER / "module.pt2"
KERNELS = pytorchs_kernels.load()
REGIONS = {}


def region(**options):
    """Note a function as a region that is compiled with these options of torch.compile."""

    def note(function):
        REGIONS[function.__name__] = (function, options)
        return function

    return note


def lazily(meta):
    return (triton.cdiv(meta["n_elements"], meta["BLOCK_SIZE"]),)


@region()
def plain(x, y):
    out = torch.zeros_like(x)
    KERNELS.add_kernel[(63,)](x * 2, y, out, N, BLOCK_SIZE=16)
    return out.sin() + 1


@region()
def tuned(x, y):
    out = torch.zeros_like(x)
    KERNELS.add_kernel_autotuned[lazily](x, y, out, x.numel())
    return out * 2


@region(dynamic=True)
def sizes_that_change(x, y):
    out = torch.zeros_like(x)
    KERNELS.add_kernel[lazily](x, y, out, x.numel(), BLOCK_SIZE=64)
    return out + x.shape[0]


@region()
def mutated(x, y):
    x = x.clone()
    KERNELS.mul2_inplace_kernel[lazily](x, x.numel(), BLOCK_SIZE=16)
    return x + y


@region()
def optional(x, y):
    out = torch.zeros_like(x)
    KERNELS.add_kernel_with_none_param_and_equal_to_1_arg[lazily](
        x, None, out, N, x.stride(0), ARGS_PASSED="one", BLOCK_SIZE=32
    )
    KERNELS.add_kernel_with_boolean_param[lazily](out, y, out, N, True, BLOCK_SIZE=32)
    return out


@region()
def quotes(x, y):
    out = torch.zeros_like(x)
    KERNELS.kernel_with_docstring_double_quotes[(63,)](out, N, BLOCK_SIZE=16)
    more = torch.zeros_like(x)
    KERNELS.kernel_inline_asm_single_quotes[(63,)](x + out, more, N, BLOCK_SIZE=16)
    return more


@triton_op("culaunch_tests::inductor_add", mutates_args={})
def operator(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Add."""
    out = torch.empty_like(x)
    wrap_triton(KERNELS.add_kernel)[(63,)](x, y, out, N, BLOCK_SIZE=16)
    return out


@region()
def operators(x, y):
    return operator(x, y).cos() + operator(y, x)


@region(mode="reduce-overhead")
def graphs(x, y):
    out = torch.zeros_like(x)
    KERNELS.add_kernel[(63,)](x, y, out, N, BLOCK_SIZE=16)
    more = torch.zeros_like(x)
    KERNELS.sub_kernel_autotuned[lazily](out, y, more, x.numel())
    return more + 1


@region(mode="max-autotune-no-cudagraphs")
def products(x, y):
    # Whole numbers: every configuration gives the same bits.
    left = (x % 4)[:960].view(30, 32).half()
    out = torch.zeros_like(x)
    KERNELS.add_kernel[(63,)](x, y, out, N, BLOCK_SIZE=16)
    return left @ left.t(), out


@region(fullgraph=False)
def broken(x, y):
    out = torch.zeros_like(x)
    KERNELS.add_kernel[(63,)](x, y, out, N, BLOCK_SIZE=16)
    torch._dynamo.graph_break()
    outside(out, y)
    return out + 1


@torch.compiler.disable
def outside(out, y):
    KERNELS.add_kernel[(63,)](out, y, out, N, BLOCK_SIZE=16)


class Product(torch.autograd.Function):
    """Kernels in both passes."""

    @staticmethod
    def forward(context, x, y):
        context.save_for_backward(y)
        out = torch.empty_like(x)
        KERNELS.add_kernel[(63,)](x, y, out, N, BLOCK_SIZE=16)
        return out

    @staticmethod
    def backward(context, gradient):
        (y,) = context.saved_tensors
        out = torch.empty_like(gradient)
        KERNELS.add_kernel_with_scaling[(63,)](gradient.contiguous(), y, out, N, 3.0, BLOCK_SIZE=16)
        return out, None


@region()
def trained(x, y):
    return Product.apply(x, y).sin()


def second_step(x, y):
    more = torch.zeros_like(x)
    KERNELS.add_kernel_autotuned[lazily](x, y, more, x.numel())
    return more


class Module(torch.nn.Module):
    """What is exported."""

    def forward(self, x, y):
        """Launch two kernels."""
        out = torch.zeros_like(x)
        KERNELS.add_kernel[(63,)](x, y, out, N, BLOCK_SIZE=16)
        return second_step(out, y) + 1


# ---- what is run


def arrays(device, n=N):
    x = torch.arange(n, device=device, dtype=torch.float32)
    return x, x * 0.5 + 1


def digest(found):
    """Describe a result to the bit."""
    if isinstance(found, (tuple, list)):
        return [digest(one) for one in found]
    data = found.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
    return f"{tuple(found.shape)} {found.dtype} {hashlib.sha256(data).hexdigest()[:16]}"


def scrubbed(text):
    return re.sub(r"0x[0-9a-f]+", "..", text.replace(str(FOLDER), "FOLDER"))


def compiled(name, device):
    """Compile a region, run it three times, and keep the code."""
    function, options = REGIONS[name]
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    if device == "cpu":  # to try this file where there is no GPU, on the emulated driver
        options = {**options, "backend": "aot_eager", "mode": None}
    call = torch.compile(function, **{"fullgraph": True, **options})
    if name == "trained":
        call = gradient_of(call)
    first, code = run_and_get_code(call, *arrays(device))
    (FOLDER / f"{name}.py").write_text(scrubbed("\n# ----\n".join(code)))
    found = [digest(first)]
    for n in (N, N, 700 if options.get("dynamic") else N):
        torch.compiler.cudagraph_mark_step_begin()
        found.append(digest(call(*arrays(device, n))))
    counts = torch._dynamo.utils.counters
    broken_at = sorted(scrubbed(str(one)) for one in counts["graph_break"])
    return found, counts["stats"]["unique_graphs"], len(broken_at)


def gradient_of(call):
    """Make a call that gives the result and its gradient."""

    def both(x, y):
        found = call(x.requires_grad_(), y)
        return found, torch.autograd.grad(found.sum(), x)[0]

    return both


def packaged(device):
    """Compile a package with a kernel in it; return how many kernels it has."""
    # Else each of Inductor's own kernels is the one that was measured as the fastest.
    torch._inductor.config.triton.autotune_pointwise = False
    exported = torch.export.export(Module().to(device), arrays(device), strict=True)
    torch._inductor.aoti_compile_and_package(exported, package_path=str(PACKAGE))
    with zipfile.ZipFile(PACKAGE) as package:
        return sum(name.endswith(".cubin") for name in package.namelist())


def loaded(device):
    """Load that package, run it, and return a digest of the results."""
    return digest(torch._inductor.aoti_load_package(str(PACKAGE))(*arrays(device)))


def main(how, *names):
    """Run all of it."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        torch.utils._triton.has_triton = lambda: True
    if how == "installed":
        import culaunch.triton

        culaunch.triton.install()
    for name in names or REGIONS:
        begin = time.perf_counter()
        ahead = {"packaged": packaged, "loaded": loaded}.get(name)
        found = ahead(device) if ahead else compiled(name, device)
        print(name, found, flush=True)
        print(f"{name}: {time.perf_counter() - begin:.1f} s", file=sys.stderr, flush=True)
    if how == "installed":
        print(culaunch.triton.report(), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[2:])
