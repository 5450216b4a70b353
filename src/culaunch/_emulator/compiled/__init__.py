"""The compiled engine: frequently run kernels, compiled as C."""
