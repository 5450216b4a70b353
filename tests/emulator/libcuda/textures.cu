// Textures and surfaces of CUDA's runtime, as nvcc compiles them.
#include <cstdio>
#include <cstring>

static void Check(const char* call, cudaError_t code) {
  if (code != cudaSuccess) std::printf("%s: %s\n", call, cudaGetErrorName(code));
}
#define CHECK(call) Check(#call, call)

__global__ void sample(float* out, cudaTextureObject_t image, int layer) {
  const int x = threadIdx.x, y = threadIdx.y;
  const float u = x + 0.5f, v = y + 0.5f;
  out[y * 4 + x] = layer < 0 ? tex2D<float>(image, u, v) : tex2DLayered<float>(image, u, v, layer);
}
__global__ void fetch(int4* out, cudaTextureObject_t line, int n) {
  const int i = threadIdx.x;
  out[i] = i < n ? tex1Dfetch<int4>(line, i) : make_int4(0, 0, 0, 0);
}
__global__ void normalized(float4* out, cudaTextureObject_t image) {
  out[threadIdx.x] = tex2D<float4>(image, threadIdx.x + 0.5f, 0.5f);
}
__global__ void cube(float* out, cudaTextureObject_t faces) {
  const float x[] = {1, -1, 0, 0, 0, 0}, y[] = {0, 0, 1, -1, 0, 0}, z[] = {0, 0, 0, 0, 1, -1};
  const int i = threadIdx.x;
  out[i] = texCubemap<float>(faces, x[i], y[i], z[i]);
}
__global__ void twice(cudaSurfaceObject_t image) {
  const int x = threadIdx.x, y = threadIdx.y;
  float value;
  surf2Dread(&value, image, x * 4, y);
  surf2Dwrite(2 * value, image, x * 4, y);
  surf2Dwrite(-1.0f, image, (x + 4) * 4, y, cudaBoundaryModeZero);
}
__global__ void level(float* out, cudaTextureObject_t image) {
  out[0] = tex2DLod<float>(image, 0.5f, 0.5f, 0.0f);
  out[1] = tex2DLod<float>(image, 0.5f, 0.5f, 1.0f);
  out[2] = tex2DGrad<float>(image, 0.5f, 0.5f, make_float2(0.5f, 0), make_float2(0, 0.5f));
}

template <class T>
static void Show(const char* what, const T* device, int count) {
  T* host = new T[count];
  CHECK(cudaMemcpy(host, device, count * sizeof(T), cudaMemcpyDefault));
  std::printf("%s:", what);
  for (int i = 0; i < count; ++i) std::printf(" %g", double(host[i]));
  std::printf("\n");
  delete[] host;
}

static cudaTextureObject_t Texture(cudaArray_t array, cudaTextureDesc description = {}) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureObject_t texture = 0;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  cudaResourceDesc shown = {};
  CHECK(cudaGetTextureObjectResourceDesc(&shown, texture));
  if (shown.res.array.array != array) std::printf("another array\n");
  return texture;
}

int main() {
  float *out, host[24];
  CHECK(cudaMallocManaged(&out, 1024));
  for (int i = 0; i < 24; ++i) host[i] = i;
  const auto floats = cudaCreateChannelDesc<float>();

  cudaArray_t plane, layers, faces;
  CHECK(cudaMallocArray(&plane, &floats, 4, 3, cudaArraySurfaceLoadStore));
  CHECK(cudaMemcpy2DToArray(plane, 0, 0, host, 16, 16, 3, cudaMemcpyHostToDevice));
  cudaChannelFormatDesc format;
  cudaExtent extent;
  unsigned flags;
  CHECK(cudaArrayGetInfo(&format, &extent, &flags, plane));
  std::printf("%d bits, %zu x %zu x %zu, %u\n", format.x, extent.width, extent.height, extent.depth,
              flags);
  sample<<<1, dim3(4, 3)>>>(out, Texture(plane), -1);
  Show("plane", out, 12);

  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = plane;
  cudaSurfaceObject_t surface;
  CHECK(cudaCreateSurfaceObject(&surface, &resource));
  twice<<<1, dim3(4, 3)>>>(surface);
  float back[12];
  CHECK(cudaMemcpy2DFromArray(back, 16, plane, 0, 0, 16, 3, cudaMemcpyDeviceToHost));
  std::printf("twice: %g %g %g\n", back[1], back[4], back[11]);
  CHECK(cudaDestroySurfaceObject(surface));

  CHECK(cudaMalloc3DArray(&layers, &floats, make_cudaExtent(4, 3, 2), cudaArrayLayered));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(host, 16, 4, 3);
  copy.dstArray = layers;
  copy.extent = make_cudaExtent(4, 3, 2);
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  sample<<<1, dim3(4, 3)>>>(out, Texture(layers), 1);
  Show("layer", out, 12);

  CHECK(cudaMalloc3DArray(&faces, &floats, make_cudaExtent(2, 2, 6), cudaArrayCubemap));
  copy.srcPtr = make_cudaPitchedPtr(host, 8, 2, 2);
  copy.dstArray = faces;
  copy.extent = make_cudaExtent(2, 2, 6);
  CHECK(cudaMemcpy3D(&copy));
  cudaTextureDesc linear = {};
  linear.filterMode = cudaFilterModeLinear;
  linear.normalizedCoords = 1;
  cube<<<1, 6>>>(out, Texture(faces, linear));
  Show("faces", out, 6);

  cudaArray_t bytes;
  const auto octets = cudaCreateChannelDesc<uchar4>();
  const unsigned char colors[] = {0, 51, 102, 255, 255, 0, 0, 51};
  CHECK(cudaMallocArray(&bytes, &octets, 2, 1));
  CHECK(cudaMemcpyToArray(bytes, 0, 0, colors, sizeof colors, cudaMemcpyHostToDevice));
  cudaTextureDesc description = {};
  description.readMode = cudaReadModeNormalizedFloat;
  normalized<<<1, 2>>>(reinterpret_cast<float4*>(out), Texture(bytes, description));
  Show("normalized", out, 8);

  int* line;
  CHECK(cudaMalloc(&line, 64));
  const int numbers[] = {1, 2, 3, 4, 5, 6, 7, -8};
  CHECK(cudaMemcpy(line, numbers, sizeof numbers, cudaMemcpyDefault));
  resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = line;
  resource.res.linear.desc = cudaCreateChannelDesc<int4>();
  resource.res.linear.sizeInBytes = sizeof numbers;
  cudaTextureObject_t texture;
  description = {};
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  fetch<<<1, 2>>>(reinterpret_cast<int4*>(out), texture, 2);
  Show("line", reinterpret_cast<int*>(out), 8);
  CHECK(cudaDestroyTextureObject(texture));

  cudaMipmappedArray_t mipmap;
  CHECK(cudaMallocMipmappedArray(&mipmap, &floats, make_cudaExtent(4, 4, 0), 3));
  for (int i = 0; i < 3; ++i) {
    cudaArray_t part;
    CHECK(cudaGetMipmappedArrayLevel(&part, mipmap, i));
    for (float& value : host) value = i + 1;
    CHECK(cudaMemcpyToArray(part, 0, 0, host, 4 * (4 >> i) * (4 >> i), cudaMemcpyHostToDevice));
  }
  resource = {};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = mipmap;
  description.normalizedCoords = 1;
  description.maxMipmapLevelClamp = 2;
  CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  level<<<1, 1>>>(out, texture);
  Show("levels", out, 3);

  CHECK(cudaFreeArray(nullptr));
  CHECK(cudaFreeArray(plane));
  CHECK(cudaFreeMipmappedArray(mipmap));
  CHECK(cudaDeviceSynchronize());
}
