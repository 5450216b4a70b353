"""Compile a Triton kernel ahead of time, with no GPU.

Usage: python triton_kernel.py OUTPUT [ARCHITECTURE]. Writes the cubin, or PTX where OUTPUT ends
in .ptx, and prints what a caller must know.
"""

import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def square(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(y + i, value * value, mask=i < n)


def compile_square(architecture=80, block=1024):
    """Return Triton's compiled kernel, once it is known to need nothing that a launch must give."""
    source = ASTSource(
        square,
        signature={"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": block},
    )
    compiled = triton.compile(source, target=GPUTarget("cuda", architecture, 32))
    metadata = compiled.metadata
    for name in ("global_scratch_size", "profile_scratch_size"):
        if getattr(metadata, name, 0):
            raise SystemExit(f"{metadata.name} needs scratch memory ({name}): allocate it")
    return compiled


if __name__ == "__main__":
    output = Path(sys.argv[1])
    compiled = compile_square(int(sys.argv[2]) if len(sys.argv) > 2 else 80)
    if output.suffix == ".ptx":
        output.write_text(compiled.asm["ptx"])
    else:
        output.write_bytes(compiled.asm["cubin"])
    metadata = compiled.metadata
    print(f"{metadata.name}: {metadata.num_warps * 32} threads, {metadata.shared} bytes shared")
