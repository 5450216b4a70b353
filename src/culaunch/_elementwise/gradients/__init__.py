"""Gradients of traced functions, as functions that are traced themselves."""

from culaunch._elementwise.gradients import function as function
