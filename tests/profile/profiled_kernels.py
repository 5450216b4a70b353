"""A kernel that is profiled."""

import culaunch as cl

PTX = """.version 8.4
.target sm_80
.address_size 64
.visible .entry {name}(.param .u64 {name}_0, .param .u32 {name}_1)
{{
  .reg .b64 %p; .reg .b32 %i, %v;
  ld.param.u64 %p, [{name}_0];
  ld.param.u32 %v, [{name}_1];
  ld.global.u32 %i, [%p];
  add.s32 %i, %i, %v;
  st.global.u32 [%p], %i;
  ret;
}}
"""


def add_kernel(name="add", signature="int* y, int value"):
    """Load a kernel that adds a number to the first element of an array."""
    return cl.load(PTX.format(name=name).encode()).kernel(name, signature=signature)
