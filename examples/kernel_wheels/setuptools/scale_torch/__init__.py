"""Kernels that scale a tensor."""

import torch

from scale_torch import _C  # noqa: F401  (registers the operator)


def scale(x, factor):
    """Return x times factor, computed on the current stream of its device."""
    stream = torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else 0
    return torch.ops.scale_torch.scale(x, factor, stream)
