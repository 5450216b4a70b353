"""ldmatrix, mma and wmma."""
