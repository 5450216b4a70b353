"""Element types and layouts of arrays in NumPy and DLPack."""
