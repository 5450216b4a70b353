static pthread_mutex_t culaunch_mutex = PTHREAD_MUTEX_INITIALIZER;

static int culaunch_device_fits(const culaunch_variant *variant, int capability) {
  if (variant->rule == 'A') return variant->capability == capability;
  if (variant->rule == 'P') return variant->capability <= capability;
  return variant->capability / 10 == capability / 10 && variant->capability <= capability;
}

static int culaunch_any_fits(int capability) {
  for (int i = 0; i < CULAUNCH_VARIANTS; ++i) {
    if (culaunch_device_fits(&culaunch_variants[i], capability)) return 1;
  }
  return 0;
}

static CUresult culaunch_find_device(int *device, int *capability) {
  CUdevice current;
  int major = 0, minor = 0;
  CUresult code = cuCtxGetDevice(&current);
  if (code == CUDA_SUCCESS)
    code = cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, current);
  if (code == CUDA_SUCCESS)
    code = cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, current);
  *device = (int)current;
  *capability = 10 * major + minor;
  return code;
}

/* Load the image and allow what it needs on this device, once; other threads wait. */
static CUresult culaunch_prepare(culaunch_variant *variant, int device, CUkernel *kernel) {
  CUresult code = CUDA_SUCCESS;
  const uint64_t bit = UINT64_C(1) << (device & 63);
  pthread_mutex_lock(&culaunch_mutex);
  if (variant->library == NULL) {
    CUlibrary library = NULL;
    CUkernel found = NULL;
    code = cuLibraryLoadData(&library, variant->image, NULL, NULL, 0, NULL, NULL, 0);
    if (code == CUDA_SUCCESS) {
      code = cuLibraryGetKernel(&found, library, variant->name);
      if (code == CUDA_SUCCESS) {
        variant->library = library;
        variant->kernel = found;
      } else {
        cuLibraryUnload(library);
      }
    }
  }
  if (code == CUDA_SUCCESS && (device > 63 || (variant->prepared & bit) == 0)) {
    if (variant->shared > 49152)
      code = cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  (int)variant->shared, variant->kernel, device);
    if (code == CUDA_SUCCESS && variant->ctas > 8)
      code = cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1,
                                  variant->kernel, device);
    if (code == CUDA_SUCCESS && device <= 63) variant->prepared |= bit;
  }
  *kernel = variant->kernel;
  pthread_mutex_unlock(&culaunch_mutex);
  return code;
}

static CUresult culaunch_launch(culaunch_variant *variant, int device, CUstream stream, unsigned x,
                                unsigned y, unsigned z, void **arguments, CUdeviceptr *scratch) {
  CUkernel kernel = NULL;
  /* The most that CUDA allows; along x the blocks of all clusters count. */
  if (x > 2147483647u / variant->ctas || y > 65535 || z > 65535) return CUDA_ERROR_INVALID_VALUE;
  if (x == 0 || y == 0 || z == 0) return CUDA_SUCCESS;
  CUresult code = culaunch_prepare(variant, device, &kernel);
  if (code != CUDA_SUCCESS) return code;
  const size_t blocks = (size_t)x * y * z * variant->ctas;
  if (variant->global_scratch > SIZE_MAX / blocks || variant->profile_scratch > SIZE_MAX / blocks)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (variant->global_scratch != 0)
    code = cuMemAllocAsync(&scratch[0], variant->global_scratch * blocks, stream);
  if (code == CUDA_SUCCESS && variant->profile_scratch != 0)
    code = cuMemAllocAsync(&scratch[1], variant->profile_scratch * blocks, stream);
  if (code == CUDA_SUCCESS) {
    CUlaunchAttribute attributes[4];
    CUlaunchConfig config;
    memset(&config, 0, sizeof config);
    memset(attributes, 0, sizeof attributes);
    config.gridDimX = x * variant->ctas;
    config.gridDimY = y;
    config.gridDimZ = z;
    config.blockDimX = variant->threads;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = variant->shared;
    config.hStream = stream;
    config.attrs = attributes;
    if (variant->ctas > 1) {
      CUlaunchAttribute *one = &attributes[config.numAttrs++];
      one->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      one->value.clusterDim.x = variant->ctas;
      one->value.clusterDim.y = one->value.clusterDim.z = 1;
      /* As Triton does: clusters are spread over the device. */
      one = &attributes[config.numAttrs++];
      one->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
      one->value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
    }
    if (variant->cooperative) {
      CUlaunchAttribute *one = &attributes[config.numAttrs++];
      one->id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
      one->value.cooperative = 1;
    }
    if (variant->programmatic) {
      CUlaunchAttribute *one = &attributes[config.numAttrs++];
      one->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      one->value.programmaticStreamSerializationAllowed = 1;
    }
    code = cuLaunchKernelEx(&config, (CUfunction)kernel, arguments, NULL);
  }
  /* In the order of the stream: after the kernel. */
  for (int i = 0; i < 2; ++i) {
    if (scratch[i] == 0) continue;
    const CUresult freed = cuMemFreeAsync(scratch[i], stream);
    if (code == CUDA_SUCCESS) code = freed;
  }
  return code;
}
