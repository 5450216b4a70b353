"""The parts of launch_overhead.py: kernels, contenders, timing, report."""
