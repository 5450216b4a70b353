"""PyTorch operators of functions: one declaration gives torch a schema, shapes and gradients."""

from culaunch._torch.operator import TorchOperator
from culaunch._torch.registration import torch_op

__all__ = ["TorchOperator", "torch_op"]
