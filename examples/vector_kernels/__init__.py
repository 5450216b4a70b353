"""A Python package that ships device headers as package data."""
