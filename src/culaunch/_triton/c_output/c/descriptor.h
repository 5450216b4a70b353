#ifndef CULAUNCH_TENSOR_DESCRIPTOR
#define CULAUNCH_TENSOR_DESCRIPTOR
/* A tensor on the device, from its outermost dimension to its innermost one. */
typedef struct {
  CUdeviceptr data;
  int64_t shape[5];
  int64_t strides[5]; /* in elements; the innermost one is 1 */
  int fills_nan;      /* 1: what is outside it reads as NaN; 0: as zero */
  int rounds_to_tf32; /* 1: elements of 32 bits are rounded to TF32 as they are read */
} culaunch_tensor_descriptor;
#endif
