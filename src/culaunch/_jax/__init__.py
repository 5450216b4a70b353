"""Functions inside of programs of JAX: one declaration, and jit, grad and vmap know it."""

from culaunch._core import set_upcalls
from culaunch._jax import upcalls
from culaunch._jax.operator import JaxOperator, jax_op
from culaunch._jax.traced import call_traced

set_upcalls(jax=upcalls)

__all__ = ["JaxOperator", "call_traced", "jax_op"]
