"""Images loaded into the driver: their kernels and variables."""
