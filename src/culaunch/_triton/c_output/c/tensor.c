static int culaunch_is_tensor(const culaunch_tensor_descriptor *tensor, int rank) {
  if (tensor == NULL || (tensor->fills_nan | tensor->rounds_to_tf32) >> 1 != 0) return 0;
  for (int i = 0; i < rank; ++i) {
    if (tensor->shape[i] < 0 || tensor->shape[i] > INT32_MAX || tensor->strides[i] < 0) return 0;
  }
  return 1;
}
