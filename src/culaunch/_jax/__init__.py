"""Functions in JAX programs: one declaration works with jit, grad and vmap."""

from culaunch._core import set_upcalls
from culaunch._jax import upcalls
from culaunch._jax.operator import JaxOperator, jax_op
from culaunch._jax.traced import call_traced

set_upcalls(jax=upcalls)

__all__ = ["JaxOperator", "call_traced", "jax_op"]
