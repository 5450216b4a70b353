"""PyTorch operators of functions: one declaration, and torch has schema, shapes and gradients."""

from culaunch._torch.operator import TorchOperator
from culaunch._torch.registration import torch_op

__all__ = ["TorchOperator", "torch_op"]
