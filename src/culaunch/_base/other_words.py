"""Other libraries' names: the error for an unknown name suggests ours."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")

# By the class, or the module "culaunch"; CuPy's, PyCUDA's, Numba's, cuda.core's and torch's words.
OTHER_WORDS: dict[str, dict[str, str]] = {
    "culaunch": {
        **dict.fromkeys(
            ("RawKernel", "_compile_kernel"), 'culaunch.load(culaunch.compile(source))["name"]'
        ),
        **dict.fromkeys(
            ("RawModule", "SourceModule", "Program"), "culaunch.load(culaunch.compile(source))"
        ),
        **dict.fromkeys(("ElementwiseKernel", "ufunc"), "culaunch.elementwise.kernel(...)"),
        "ReductionKernel": "culaunch.elementwise.ReductionKernel(...)",
        **dict.fromkeys(("fuse", "vectorize"), "culaunch.elementwise.fuse(function)"),
        **dict.fromkeys(("arange", "array", "asarray", "full", "ones", "to_gpu"),
                        "culaunch.to_device(numpy_array)"),
        **dict.fromkeys(("device_array", "gpuarray", "mem_alloc"), "culaunch.empty(shape, dtype)"),
        "device_array_like": "culaunch.empty(like=array)",
        **dict.fromkeys(("asnumpy", "memcpy_dtoh"), "array.numpy() or array.copy_to(host)"),
        "memcpy_htod": "array.copy_from(host)",
        **dict.fromkeys(("alloc_pinned_memory", "pagelocked_empty", "pinned_array", "pinned_empty"),
                        "culaunch.pinned(shape, dtype)"),
        **dict.fromkeys(("managed_array", "managed_empty"), "culaunch.managed(shape, dtype)"),
        **dict.fromkeys(("sync", "device_synchronize"), "culaunch.synchronize()"),
        **dict.fromkeys(("event_elapsed_time", "get_elapsed_time"), "end.elapsed(start)"),
        "do_bench": "culaunch.profile.benchmark(function)",
        "cdiv": "culaunch.ceildiv(n, size)",
        "cuda": "culaunch itself, as in culaunch.Stream()",
        "get_device": "culaunch.driver.devices()",
        "jit": (
            "culaunch.compile for CUDA C++, culaunch.elementwise.fuse for a formula, and "
            "culaunch.triton.native for a Triton kernel"
        ),
        "launch": "kernel[grid, block](...)",
        "LaunchConfig": "kernel.configure(grid=, block=)",
        "Linker": "culaunch.link(images)",
        "ObjectCode": "culaunch.Image(data)",
        "native": "culaunch.triton.native(kernel)",
        "occupancy": "kernel.occupancy(block)",
    },
    "Module": {
        **dict.fromkeys(("get_function", "get_kernel", "getFunction"), 'module["name"]'),
        "functions": "list(module)",
    },
    "Kernel": {
        "compile": "not needed: culaunch.compile has compiled it",
        "forall": "kernel[culaunch.ceildiv(n, 256), 256]",
        **dict.fromkeys(("prepare", "prepared_call", "prepared_async_call"),
                        "kernel.configure(grid=, block=)"),
        "max_dynamic_shared_size_bytes": "not needed: each launch opts in automatically",
        "num_arguments": "len(kernel.signature.parameters)",
        **{theirs: f"kernel.attributes().{ours}" for theirs, ours in {
            "binary_version": "binary_version", "const_size_bytes": "const_bytes",
            "local_size_bytes": "local_bytes", "max_threads_per_block": "max_threads_per_block",
            "num_regs": "registers", "ptx_version": "ptx_version",
            "shared_size_bytes": "static_shared",
        }.items()},
    },
    "DeviceArray": {
        **dict.fromkeys(("asnumpy", "copy_to_host", "cpu", "get", "to_host"), "array.numpy()"),
        **dict.fromkeys(("copy_to_device", "set"), "array.copy_from(host)"),
        **dict.fromkeys(("data", "data_ptr", "device_ptr", "gpudata", "ptr"), "array.address"),
        "copy": "culaunch.empty(like=array).copy_from(array)",
        "free": "not needed: the memory is freed with its last array",
        **dict.fromkeys(("item", "tolist"), "array.numpy().tolist()"),
        "reshape": "array.view(shape=...)",
    },
    "Stream": {
        **dict.fromkeys(("cuda_stream", "ptr"), "stream.handle"),
        **dict.fromkeys(("done", "is_done"), "stream.query()"),
        "sync": "stream.synchronize()",
        **dict.fromkeys(("wait_event", "wait_for_event", "wait_stream"), "stream.wait(event)"),
    },
    "Event": {
        **dict.fromkeys(("cuda_event", "ptr"), "event.handle"),
        **dict.fromkeys(("done", "is_done"), "event.query()"),
        **dict.fromkeys(("elapsed_time", "time_since", "time_till"), "end.elapsed(start)"),
        "sync": "event.synchronize()",
        "wait": "stream.wait(event)",
    },
}  # fmt: skip


# Features that culaunch does not have, and their replacements: the table of docs/support.md.
_POOL = "culaunch has no memory pool: use the framework's allocator, or cuda.core"
_RANDOM = "culaunch has no random numbers: use torch.rand, cupy.random or jax.random"
_MATRICES = "culaunch has no matrix products: use torch.matmul, or CUTLASS in a kernel"
_OVER = "use a framework's array over the same memory, as in torch.from_dlpack(array).{name}()"
_REDUCTION = "reduce in a fused function, with culaunch.elementwise.{name}, or " + _OVER
_REDUCTIONS = {
    **{name: _REDUCTION.format(name=name) for name in (
        "all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var",
    )},
    **{name: _OVER.format(name=name) for name in ("argsort", "cumsum", "sort")},
}  # fmt: skip
DONE_BY_OTHERS: dict[str, dict[str, str]] = {
    "culaunch": {
        **dict.fromkeys(
            ("MemoryPool", "get_default_memory_pool", "get_default_pinned_memory_pool",
             "set_allocator"), _POOL
        ),
        **dict.fromkeys(("curand", "rand", "randn", "random"), _RANDOM),
        **dict.fromkeys(("dot", "einsum", "linalg", "matmul"), _MATRICES),
        **_REDUCTIONS,
    },
    "DeviceArray": {
        **dict.fromkeys(("dot", "matmul"), _MATRICES),
        **_REDUCTIONS,
        **dict.fromkeys(
            ("T", "mT", "transpose", "swapaxes", "permute", "astype"),
            "a DeviceArray is memory in C order: use a framework's array over it, as in "
            "torch.from_dlpack(array)",
        ),
    },
}  # fmt: skip


def with_other_words(cls: type[T]) -> type[T]:
    """Let a class suggest its own names for those of ``OTHER_WORDS``."""
    owner = cls.__name__

    # Defined only here: otherwise type checkers would accept every name.
    def answer(self: object, name: str) -> object:
        """Refuse an unknown name. Python calls this only for names that it does not find."""
        if hint := suggestion(owner, name):
            raise AttributeError(f"{owner!r} object has no attribute {name!r}{hint}")
        # Python's own message, or the message of a property without a value.
        return object.__getattribute__(self, name)

    cls.__getattr__ = answer  # type: ignore[attr-defined]
    return cls


def suggestion(owner: str, name: str) -> str:
    """Return ``": use array.address"``, what other library does it, or nothing if it is unknown.

    Parameters
    ----------
    owner : str
        The name of a class, or of the module.
    name : str
        The attribute that was asked for.
    """
    meant = OTHER_WORDS[owner].get(name)
    if meant:
        return f": {meant}" if meant.startswith("not needed") else f": use {meant}"
    by_others = DONE_BY_OTHERS.get(owner, {}).get(name)
    return f": {by_others}" if by_others else ""
