typedef struct {
  unsigned rank, swizzle, element_size, element_type, is_fp4_padded;
  cuuint32_t box[5];
} culaunch_layout;

/* The driver counts dimensions from the contiguous one. */
static CUresult culaunch_encode(CUtensorMap *map, const culaunch_layout *layout,
                                const culaunch_tensor_descriptor *tensor) {
  cuuint64_t sizes[5] = {0}, strides[5] = {0};
  cuuint32_t box[5] = {0}, steps[5] = {0};
  const unsigned rank = layout->rank;
  const int type =
      tensor->rounds_to_tf32 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : (int)layout->element_type;
  for (unsigned i = 0; i < rank; ++i) {
    const unsigned from = rank - 1 - i;
    if (tensor->shape[from] < 0 || tensor->shape[from] > INT32_MAX || tensor->strides[from] < 0)
      return CUDA_ERROR_INVALID_VALUE;
    sizes[i] = (cuuint64_t)tensor->shape[from];
    box[i] = layout->box[from];
    steps[i] = 1;
    if (i + 1 < rank) strides[i] = (cuuint64_t)tensor->strides[from - 1] * layout->element_size;
  }
  if (layout->is_fp4_padded) sizes[0] *= 2;
  return cuTensorMapEncodeTiled(
      map, (CUtensorMapDataType)type, rank, (void *)(uintptr_t)tensor->data, sizes, strides, box,
      steps, CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)layout->swizzle,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      tensor->fills_nan ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                        : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
