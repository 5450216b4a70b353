"""Find the kernels of an image that use the most registers, without a GPU.

Usage: ``python inspect_image.py [FILE]``. Without a file it makes one to look at.

# needs nvrtc
"""

import sys

import culaunch as cl

SOURCE = """
template <typename T, int N>
__global__ void sum(T* out, const T* in, int n) {
  __shared__ T part[N];
  T mine = 0;
  for (int i = threadIdx.x; i < n; i += N) mine += in[i];
  part[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < N; i++) mine += part[i];
    *out = mine;
  }
}
"""


def main():
    if len(sys.argv) > 1:
        source = sys.argv[1]
    else:
        names = ["sum<float, 64>", "sum<double, 256>"]
        source = cl.compile(SOURCE, arch="sm_90", names=names)
    rows = [
        (kernel.registers, kernel.static_shared, image.arch, kernel.demangled)
        for image in cl.inspect(source).images
        for kernel in image.kernels
        if kernel.registers is not None  # PTX has no registers yet
    ]
    print("registers  shared  architecture  kernel")
    for registers, shared, arch, name in sorted(rows, reverse=True)[:10]:
        print(f"{registers:9}  {shared if shared is not None else '?':>6}  {arch:12}  {name}")


if __name__ == "__main__":
    main()
