"""Another device's memory as a kernel's argument: torch's symmetric memory.

    torchrun --nproc-per-node 2 examples/distributed/symmetric_memory.py

Each process reads its neighbor's buffer in its own kernel, through the peers' connection.
"""

# needs two GPUs
import os

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

import culaunch as cl

SOURCE = """
__global__ void add(float* y, const float* mine, const float* theirs, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = mine[i] + theirs[i];
}
"""


def main():
    rank = int(os.environ["RANK"])
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl")
    add = cl.load(cl.compile(SOURCE, names=["add"]))["add"]

    # [peers]
    n = 100_000
    mine = symmetric.empty(n, dtype=torch.float32, device=device)
    handle = symmetric.rendezvous(mine, dist.group.WORLD)
    mine.fill_(rank + 1)
    handle.barrier()  # all processes have written
    # A view of the neighbor's memory. It counts as this device's, which has access to it.
    neighbour = (rank + 1) % handle.world_size
    theirs = handle.get_buffer(neighbour, (n,), torch.float32)
    y = torch.empty(n, device=device)
    add[cl.ceildiv(n, 256), 256](y, mine, theirs, n)
    handle.barrier()  # all processes have read
    # [end]
    torch.cuda.synchronize()
    assert (y == (rank + 1) + (neighbour + 1)).all()
    print(f"rank {rank}: read {n} elements of rank {neighbour}", flush=True)
    dist.destroy_process_group()


main()
