"""Compile the Triton kernels of the corpus for sm_80 and keep their PTX.

Needs ``triton`` 3.6, no GPU: ``python tests/emulator/corpus/record_triton.py``. Line information
is left out: it names files of the machine that compiled.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROWS = {"BLOCK": 1024}
TILES = {"BM": 64, "BN": 64, "BK": 32}

# name: kernel, signature of its run-time arguments, constants, options
KERNELS: dict[str, tuple[str, str, dict[str, int], dict[str, int]]] = {
    "add": ("add", "*fp32 *fp32 *fp32 i32", ROWS, {}),
    "softmax": ("softmax", "*fp32 *fp32 i32", ROWS, {}),
    "layer_norm": ("layer_norm", "*fp32 *fp32 *fp32 *fp32 *fp32 *fp32 i32 fp32", ROWS, {}),
    "matmul_f16": ("matmul", "*fp16 *fp16 *fp32 i32:16 i32:16 i32:16", TILES, {"num_stages": 3}),
    "matmul_bf16": ("matmul", "*bf16 *bf16 *fp32 i32 i32 i32", TILES, {"num_stages": 2}),
    "matmul_tf32": ("matmul", "*fp32 *fp32 *fp32 i32:16 i32:16 i32:16", TILES, {"num_stages": 3}),
    "matmul_int8": ("matmul_int8", "*i8 *i8 *i32 i32:16", TILES, {"num_stages": 2}),
    "histogram": ("histogram", "*i32 *i32 *i32 *fp32 i32", {"BLOCK": 512}, {}),
    "dropout": ("dropout", "*fp32 *fp32 i32 fp32 i32", ROWS, {}),
    "sort_and_scan": ("sort_and_scan", "*i32 *i32 *i32", {"BLOCK": 256}, {}),
}


def main() -> None:
    sys.path.insert(0, str(HERE))
    import triton
    import triton_kernels
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    facts = {}
    for name, (kernel, types, constants, options) in KERNELS.items():
        function = getattr(triton_kernels, kernel)
        kinds = types.split()
        names = function.arg_names[: len(kinds)]
        signature = {n: k.removesuffix(":16") for n, k in zip(names, kinds, strict=True)}
        signature |= dict.fromkeys(constants, "constexpr")
        aligned = {
            (i,): [["tt.divisibility", 16]]
            for i, kind in enumerate(kinds)
            if kind[0] == "*" or kind.endswith(":16")
        }
        source = ASTSource(function, signature, constants, aligned)
        compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=options)
        (HERE / "ptx" / f"triton_{name}.ptx").write_text(without_lines(compiled.asm["ptx"]))
        metadata = compiled.metadata
        facts[name] = {
            "kernel": metadata.name,
            "warps": metadata.num_warps,
            "shared": metadata.shared,
            "triton": triton.__version__,
        }
    (HERE / "ptx" / "triton.json").write_text(json.dumps(facts, indent=2) + "\n")


def without_lines(ptx: str) -> str:
    """Drop line information and comments."""
    ptx = ptx.split("\t.section\t.debug", maxsplit=1)[0]
    kept = [
        line for line in ptx.split("\n") if not re.match(r"\s*(\.loc|\.file|//|\$L__tmp)", line)
    ]
    return "\n".join(re.sub(r"\s+//.*", "", line) for line in kept if line.strip()) + "\n"


if __name__ == "__main__":
    main()
