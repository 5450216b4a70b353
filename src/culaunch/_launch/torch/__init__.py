"""Tensors of torch, read from their memory."""
