"""Packs libraries into wheels."""
