"""Programs that ask PyTorch for a GPU, where the emulated driver's memory is the host's."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class CudaOnHost(TorchFunctionMode):
    """In its block, tensors for a GPU are on the host, and claim to be on a GPU.

    From then on, queries of the GPU get the answers of an A100. Use it in a process of its own.
    """

    def __enter__(self) -> CudaOnHost:
        device = SimpleNamespace(**_PROPERTIES)
        for name, answer in {
            "is_available": lambda: True,
            "is_bf16_supported": lambda *_: True,
            "mem_get_info": lambda *_: (device.total_memory // 4, device.total_memory),
            "manual_seed": lambda _: None,
            "manual_seed_all": lambda _: None,
            "get_device_name": lambda *_: device.name,
            "get_device_capability": lambda *_: (device.major, device.minor),
            "get_device_properties": lambda *_: device,
            "current_device": lambda: 0,
            "device_count": lambda: 1,
            "synchronize": lambda *_: None,
            "empty_cache": lambda: None,
            "set_device": lambda *_: None,
            "device": lambda *_: contextlib.nullcontext(),
            "_DeviceGuard": lambda *_: contextlib.nullcontext(),
        }.items():
            setattr(torch.cuda, name, answer)
        # Which some import, and which PyTorch without CUDA does not have.
        vars(torch)["_C"].__dict__.setdefault("_cuda_getCurrentRawStream", lambda _: 0)
        return super().__enter__()

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function == torch.Tensor.is_cuda.__get__:
            return True
        if function is torch.Tensor.cuda:
            return args[0]
        kwargs = {name: _on_host(value) for name, value in (kwargs or {}).items()}
        return function(*map(_on_host, args), **kwargs)


_PROPERTIES = {
    "name": "NVIDIA A100", "major": 8, "minor": 0, "multi_processor_count": 16,
    "max_threads_per_multi_processor": 2048, "total_memory": 1 << 32,
}  # fmt: skip


def _on_host(value: Any) -> Any:
    """Return the host's device for a GPU's device; return all other values unchanged."""
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return value
