"""Saves functions and kernels as libraries."""
