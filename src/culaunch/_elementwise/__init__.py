"""Traced Python functions, and C++ text, to fused elementwise kernels."""

from culaunch._elementwise import gradients as gradients
from culaunch._elementwise import in_programs as in_programs
from culaunch._elementwise import recording as recording
