// CuPy's _ind: how many elements there are.
struct Indexer {
  long long count;
  __device__ long long size() const { return count; }
};
