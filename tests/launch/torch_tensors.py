"""Tensors of torch whose memory is not what they show: how to make one, and why it is refused."""

from __future__ import annotations

REFUSED = {
    "conjugate": r"lazy conjugate.*: pass tensor\.resolve_conj\(\)",
    "imaginary part of a conjugate": r"lazy negative.*: pass tensor\.resolve_neg\(\)",
    "negative": r"lazy negative.*: pass tensor\.resolve_neg\(\)",
    "transposed slice of a conjugate": r"resolve_conj",
    "conjugate parameter": r"resolve_conj",
    "meta": "meta device",
    "fake": "is fake",
    "sparse": "layout torch.sparse_coo",
    "compressed sparse": "layout torch.sparse_csr",
    "mkldnn": "layout torch._mkldnn",
    "quantized": "is quantized",
    "nested": "is nested",
    "zero": "has no memory",
    "wrapper": "has no memory",
    "freed": "has no memory, or has freed it",
    "batched": "transformation, such as vmap",
    "differentiated": "transformation, such as vmap",
    "functional": "transformation, such as vmap",
}


def call_with(name, call):
    """Call with a tensor of that kind."""
    import torch

    transformations = {
        "batched": torch.vmap,
        "differentiated": torch.func.grad,
        "functional": torch.func.functionalize,
    }
    if name not in transformations:
        call(_make(name))
        return

    def body(tensor):
        call(tensor)
        return tensor.sum()

    transformations[name](body)(torch.ones(3, 4) if name == "batched" else torch.ones(4))


def _make(name):
    import torch

    z = torch.ones(4, 4, dtype=torch.complex64)
    return {
        "conjugate": lambda: z.conj(),
        "imaginary part of a conjugate": lambda: z.conj().imag,
        "negative": lambda: torch._neg_view(torch.ones(4)),
        "transposed slice of a conjugate": lambda: z.conj().t()[1:, ::2],
        "conjugate parameter": lambda: torch.nn.Parameter(z).conj(),
        "meta": lambda: torch.ones(4, device="meta"),
        "sparse": lambda: torch.eye(4).to_sparse(),
        "compressed sparse": lambda: torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1)),
        "mkldnn": lambda: torch.ones(4, 4).to_mkldnn(),
        "quantized": lambda: torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8),
        "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "zero": lambda: torch._efficientzerotensor(4),
        "fake": _fake,
        "wrapper": _wrapper,
        "freed": _freed,
    }[name]()


def _fake():
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.empty(4)


def _freed():
    import torch

    tensor = torch.ones(4)
    tensor.untyped_storage().resize_(0)
    return tensor


def _wrapper():
    import torch

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            raise NotImplementedError

    return Wrapper(torch.ones(4))
