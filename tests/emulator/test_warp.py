"""NVIDIA Warp's own tests: each kernel that they run on the CPU is run on the emulator, too.

Warp compiles a kernel for the CPU with Clang and to PTX with NVRTC. Where neither contracts
floating-point operations both compute the same, and every array must come out the same, byte for
byte. Calls of one side's mathematical library may differ in the last places.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import unittest
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from emulate import pack
from emulator_internals import Device, Options, PtxImage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.needs("warp"), pytest.mark.slow]
_BLOCK = 256
_MOST_THREADS = 70_000


class Shadow:
    """A replacement of `warp.launch`: launch on the emulator, and then on the CPU."""

    def __init__(self, launch: Callable[..., Any], folder: Path) -> None:
        self.launch = launch
        self.folder = folder
        self.modules: dict[tuple[Any, int], PtxImage] = {}
        self.exact = self.close = self.skipped = 0

    def __call__(self, kernel: Any, *args: Any, **keywords: Any) -> Any:
        if keywords.get("record_cmd"):
            return self.launch(kernel, *args, **keywords)
        command = self.launch(kernel, *args, **keywords, record_cmd=True)
        memory = None if command is None else arrays_of([*args, *keywords.values()])
        if memory is None or command.bounds.size > _MOST_THREADS:
            self.skipped += 1
            return self.launch(kernel, *args, **keywords)
        before = [view.copy() for view in memory]
        self.emulate(command, memory)
        emulated = [view.copy() for view in memory]
        for view, old in zip(memory, before, strict=True):
            view[...] = old
        result = self.launch(kernel, *args, **keywords)
        self.compare(command, emulated, memory)
        return result

    def emulate(self, command: Any, memory: list[np.ndarray]) -> None:
        kernel = command.kernel
        direction = "backward" if command.adjoint else "forward"
        name = f"{kernel.get_mangled_name()}_cuda_kernel_{direction}"
        module = self.compiled(kernel.module)
        device = Device(options=Options(time_limit=60))
        device.launch(
            device.load(module),
            name,
            pack(module, name, tuple(bytes(value) for value in command.params)),
            (-(-command.bounds.size // _BLOCK),),
            (_BLOCK,),
            ranges=[(view.ctypes.data, view.nbytes) for view in memory],
        )

    def compiled(self, module: Any) -> PtxImage:
        import warp as wp

        # A generic kernel has an instance for each list of types that it was launched with.
        key = (module, sum(max(1, len(kernel.overloads)) for kernel in module.kernels.values()))
        if key not in self.modules:
            folder = self.folder / str(len(self.modules))
            (path,) = wp.compile_aot_module(module, arch=80, module_dir=folder, use_ptx=True)
            self.modules[key] = PtxImage(path.read_bytes())
        return self.modules[key]

    def compare(self, command: Any, memory: list[np.ndarray], wanted: list[np.ndarray]) -> None:
        if all(map(np.array_equal, memory, wanted)):
            self.exact += 1
            return
        for got, right in zip(memory, wanted, strict=True):
            for kind in ("f4", "f8"):
                if got.nbytes % np.dtype(kind).itemsize:
                    continue
                with np.errstate(all="ignore"):
                    if np.allclose(got.view(kind), right.view(kind), 1e-5, 1e-6, equal_nan=True):
                        break
            else:
                raise AssertionError(f"{command.kernel.key}: the emulator computes other bytes")
        self.close += 1


def arrays_of(values: list[Any]) -> list[np.ndarray] | None:
    """Return the memory of the arrays among arguments; None if some cannot be told from them."""
    import warp as wp

    found: dict[int, np.ndarray] = {}
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, (list, tuple)):
            pending.extend(value)
        elif isinstance(value, wp.array):
            if value.size and not value.is_contiguous:
                return None
            if value.size:
                found[value.ptr] = value.numpy().view(np.uint8).reshape(-1)
            if value.requires_grad and value.grad is not None:
                pending.append(value.grad)
        elif hasattr(value, "_cls") or type(value).__name__ in ("indexedarray", "StructInstance"):
            return None
    return list(found.values())


@contextlib.contextmanager
def shadowed(folder: Path) -> Iterator[Shadow]:
    import warp as wp

    shadow = Shadow(wp.launch, folder)
    wp.launch = shadow
    try:
        yield shadow
    finally:
        wp.launch = shadow.launch


@pytest.mark.parametrize(
    ("name", "launches"),
    [
        ("atomic_bitwise", 18),
        ("atomic_cas", 24),
        ("bf16", 70),
        ("bit_count", 8),
        ("conditional", 42),
        ("lvalue", 16),
        ("rand", 4),
        ("smoothstep", 8),
        ("unpack", 11),
    ],
)
def test_warp_s_tests_compute_the_same_on_the_emulator(
    name: str, launches: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARP_CACHE_PATH", str(tmp_path / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Warp's are not ours
        import warp as wp

        wp.config.quiet = True
        wp.init()
        module = importlib.import_module(f"warp.tests.test_{name}")
        wp.set_module_options({"fuse_fp": False}, module=module)
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
        with shadowed(tmp_path) as shadow:
            result = unittest.TextTestRunner(io.StringIO(), verbosity=0).run(suite)
    problems = [text for _, text in (*result.errors, *result.failures)]
    assert not problems, problems[0]
    # As many as Warp 1.19 makes: none is left out without a word.
    assert shadow.exact >= launches, (shadow.exact, shadow.close, shadow.skipped)
