"""A kernel between all-reduces, overlapped: each bucket is used while the next is being reduced.

    torchrun --nproc-per-node 2 examples/distributed/overlap.py

With GPUs it uses NCCL, a device for each process; without, gloo and the emulated driver.
"""

# needs torch
import os

import torch
import torch.distributed as dist

import culaunch as cl

if not torch.cuda.is_available():
    cl.driver.set_driver("emulator")

SOURCE = """
// One step of SGD with the mean of the gradients that all ranks have summed.
__global__ void step(float* weight, const float* gradient, float rate, int ranks, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) weight[i] -= rate * gradient[i] / ranks;
}
"""


def main():
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if on_gpu else "cpu"
    if on_gpu:
        torch.cuda.set_device(device)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29400")
    dist.init_process_group("nccl" if on_gpu else "gloo", rank=rank, world_size=ranks)

    # All ranks of a machine ask one cache: one of them compiles, and the others wait for it.
    step = cl.load(cl.compile(SOURCE, names=["step"]))["step"]

    # [overlap]
    sizes = [1000, 5000, 300, 7000]
    weights = [torch.ones(size, device=device) for size in sizes]
    gradients = [torch.full((size,), float(rank + 1), device=device) for size in sizes]
    # All are on their way at once; the backend reduces them one after the other, in its own stream.
    waiting = [dist.all_reduce(gradient, async_op=True) for gradient in gradients]
    updates = torch.cuda.Stream() if on_gpu else None
    with torch.cuda.stream(updates):
        for weight, gradient, work in zip(weights, gradients, waiting, strict=True):
            work.wait()  # with NCCL the stream waits for this bucket, and the host does not
            # The launch goes to torch's current stream; the next bucket is reduced meanwhile.
            step[cl.ceildiv(weight.numel(), 256), 256](weight, gradient, 0.5, ranks, weight.numel())
    # [end]
    if on_gpu:
        torch.cuda.current_stream().wait_stream(updates)
    mean = (ranks + 1) / 2
    for weight in weights:
        torch.testing.assert_close(weight, torch.full_like(weight, 1 - 0.5 * mean))
    print(f"rank {rank} of {ranks}: {len(weights)} buckets on {device}", flush=True)
    dist.destroy_process_group()


main()
