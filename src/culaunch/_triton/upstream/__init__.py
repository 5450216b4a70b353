"""What is read of Triton itself, and what stands in for parts of it."""
