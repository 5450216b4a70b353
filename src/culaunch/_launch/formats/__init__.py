"""Element types and layouts of arrays, as NumPy and DLPack have them."""
