"""Functions as operators of PyTorch and JAX."""

from culaunch._jax import JaxOperator, jax_op
from culaunch._torch import TorchOperator, torch_op

__all__ = [
    "JaxOperator",
    "TorchOperator",
    "jax_op",
    "torch_op",
]
