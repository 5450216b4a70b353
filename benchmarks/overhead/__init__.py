"""What launch_overhead.py is made of: kernels, contenders, timing, report."""
