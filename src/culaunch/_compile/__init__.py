"""Source to image: NVRTC, nvcc, headers."""
