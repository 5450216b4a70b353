"""Kernels that scale an array of any framework."""

from pathlib import Path

import tvm_ffi

scale = tvm_ffi.load_module(str(Path(__file__).with_name("scale.so"))).scale
