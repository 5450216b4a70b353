"""Write tokens into the pages of a cache, in place: the signature says what is written."""

import numpy as np

import culaunch as cl

kernels = cl.load(
    cl.compile(
        """
// Token t of keys goes to slot slots[t] % size of page slots[t] / size; a negative slot is skipped.
template <class T> __global__ void store(
    T* cache, const T* keys, const long long* slots, int row, int size,
    long long page_stride, long long slot_stride) {
  long long slot = slots[blockIdx.x];
  if (slot < 0) return;
  T* to = cache + slot / size * page_stride + slot % size * slot_stride;
  const T* from = keys + (long long)blockIdx.x * row;
  for (int i = threadIdx.x; i < row; i += blockDim.x) to[i] = from[i];
}""",
        names=["store<float>", "store<short>"],
    )
)


@cl.function
def update(
    cache: cl.Array("float32 | float16 | bfloat16", "pages size heads dim"),
    keys: cl.Array(cl.dtype_of("cache"), "tokens heads dim"),
    slots: cl.Array("int64", "tokens"),
):
    """Write keys into the cache: the tokens' slots count over all pages."""
    _, size, heads, dim = cache.shape
    cl.check(keys.is_contiguous(), "keys must be contiguous")
    page_stride, slot_stride, *inner = cache.strides
    cl.check((inner[0] == dim) & (inner[1] == 1), "a token's row of the cache must be contiguous")
    # Half-precision numbers are moved as they are.
    as_stored = "float" if cache.dtype == "float32" else "short"
    moved = (cache, keys) if as_stored == "float" else (cache.view("int16"), keys.view("int16"))
    row = heads * dim
    store = kernels[f"store<{as_stored}>"]
    grid, block = keys.shape[0], min(1024, cl.next_power_of_2(row))
    cl.launch_if(grid > 0, store[grid, block], *moved, slots, row, size, page_stride, slot_stride)


for dtype in (np.float32, np.float16):
    cache = cl.to_device(np.zeros((3, 4, 2, 8), dtype))
    slots = np.array([5, -1, 0, 11], np.int64)
    for tokens in (4, 0):
        keys = np.arange(tokens * 16, dtype=dtype).reshape(tokens, 2, 8)
        update(cache, cl.to_device(keys), cl.to_device(slots[:tokens]))
        if tokens:
            expected = np.zeros((12, 2, 8), dtype)
            expected[[5, 0, 11]] = keys[[0, 2, 3]]
    np.testing.assert_array_equal(cache.numpy().reshape(12, 2, 8), expected)
print(update)
