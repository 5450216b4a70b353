/* Load what fits this device and a configuration, and make it resident: no launch of it loads
 * anything then. */
static CUresult culaunch_prepare_all(const CONFIG *config) {
  int device = 0, capability = 0, found = 0;
  CUresult code = culaunch_find_device(&device, &capability);
  for (int i = 0; code == CUDA_SUCCESS && i < CULAUNCH_VARIANTS; ++i) {
    culaunch_variant *variant = &culaunch_variants[i];
    CUkernel kernel = NULL;
    CUfunction function = NULL;
    if (!culaunch_device_fits(variant, capability) || !culaunch_config_fits(config, i)) continue;
    found = 1;
    code = culaunch_prepare(variant, device, &kernel);
    if (code == CUDA_SUCCESS) code = cuKernelGetFunction(&function, kernel);
  }
  if (code != CUDA_SUCCESS || found) return code;
  return culaunch_any_fits(capability) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

static CUresult culaunch_unload_all(void) {
  CUresult code = CUDA_SUCCESS;
  pthread_mutex_lock(&culaunch_mutex);
  for (int i = 0; i < CULAUNCH_VARIANTS; ++i) {
    culaunch_variant *variant = &culaunch_variants[i];
    CUresult one = CUDA_SUCCESS;
    if (variant->library == NULL) continue;
    one = cuLibraryUnload(variant->library);
    if (code == CUDA_SUCCESS) code = one;
    variant->library = NULL;
    variant->kernel = NULL;
    variant->prepared = 0;
  }
  pthread_mutex_unlock(&culaunch_mutex);
  return code;
}
