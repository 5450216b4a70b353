// CUDA arrays: their descriptions, every copy of them, mipmaps, and objects over them.
#include "program.h"

static const char* const kLevels =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry levels(.param .u64 out, .param .u64 unit) {\n"
    "  .reg .b32 %i; .reg .b64 %out, %unit, %at; .reg .f32 %f<8>;\n"
    "  mov.u32 %i, %tid.x; ld.param.u64 %out, [out]; ld.param.u64 %unit, [unit];\n"
    "  mad.wide.u32 %at, %i, 4, %out; cvt.rn.f32.u32 %f5, %i; mul.f32 %f5, %f5, 0f3E800000;\n"
    "  mov.f32 %f6, 0f3F000000;\n"
    "  tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%unit, {%f6, %f6}], %f5;\n"
    "  st.global.f32 [%at], %f0;\n"
    "  ret;\n}\n";

static void Copies(void) {
  CUarray line, other, plane;
  CUDA_ARRAY_DESCRIPTOR format = {8, 0, CU_AD_FORMAT_SIGNED_INT32, 1}, shown = {0};
  CHECK(cuArrayCreate(&line, &format));
  CHECK(cuArrayCreate(&other, &format));
  CHECK(cuArrayGetDescriptor(&shown, line));
  EXPECT(memcmp(&shown, &format, sizeof shown) == 0);
  CUDA_ARRAY3D_DESCRIPTOR full = {4, 3, 2, CU_AD_FORMAT_FLOAT, 2, CUDA_ARRAY3D_SURFACE_LDST}, same;
  memset(&same, 0, sizeof same);
  CHECK(cuArray3DCreate(&plane, &full));
  CHECK(cuArray3DGetDescriptor(&same, plane));
  EXPECT(same.Width == 4 && same.Height == 3 && same.Depth == 2 && same.NumChannels == 2);
  EXPECT(same.Format == CU_AD_FORMAT_FLOAT && same.Flags == CUDA_ARRAY3D_SURFACE_LDST);

  int host[8] = {1, 2, 3, 4, 5, 6, 7, 8}, back[8] = {0};
  CUdeviceptr memory;
  CUstream stream;
  CHECK(cuMemAlloc(&memory, sizeof host));
  CHECK(cuStreamCreate(&stream, 0));
  CHECK(cuMemcpyHtoA(line, 0, host, sizeof host));
  CHECK(cuMemcpyAtoH(back, line, 8, 12));
  EXPECT(back[0] == 3 && back[2] == 5 && back[3] == 0);
  EXPECT(cuMemcpyAtoH(back, line, 8, 28) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyAtoA(other, 4, line, 0, 8));
  CHECK(cuMemcpyAtoD(memory, other, 0, sizeof host));
  CHECK(cuMemcpyDtoH(back, memory, sizeof back));
  EXPECT(back[0] == 0 && back[1] == 1 && back[2] == 2 && back[3] == 0);
  CHECK(cuMemcpyDtoA(line, 16, memory, 16));
  EXPECT(cuMemcpyDtoA(line, 0, memory + 4, sizeof host) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyAtoHAsync(back, line, 0, sizeof back, stream));
  EXPECT(back[3] == 4 && back[4] == 0 && back[5] == 1);

  // A copy that a stream captures runs when the graph is launched.
  CUgraph graph;
  CUgraphExec run;
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(cuMemcpyHtoAAsync(line, 0, host, sizeof host, stream));
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiate(&run, graph, 0));
  host[0] = 77;
  CHECK(cuMemcpyAtoH(back, line, 0, 4));
  EXPECT(back[0] == 1);
  CHECK(cuGraphLaunch(run, stream));
  CHECK(cuMemcpyAtoH(back, line, 0, 4));
  EXPECT(back[0] == 77);

  // The second half of the second row of the second plane.
  float part[2] = {1.5f, 2.5f}, all[2 * 3 * 4 * 2] = {0};
  CUDA_MEMCPY3D copy = {0};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = part;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = plane;
  copy.dstXInBytes = 16, copy.dstY = 1, copy.dstZ = 1;
  copy.WidthInBytes = 8, copy.Height = 1, copy.Depth = 1;
  CHECK(cuMemcpy3D(&copy));
  copy.dstZ = 2;
  EXPECT(cuMemcpy3D(&copy) == CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY3D read = {0};
  read.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  read.srcArray = plane;
  read.dstMemoryType = CU_MEMORYTYPE_HOST;
  read.dstHost = all;
  read.WidthInBytes = 32, read.Height = 3, read.Depth = 2;
  CHECK(cuMemcpy3D(&read));
  EXPECT(all[24 + 8 + 4] == 1.5f && all[24 + 8 + 5] == 2.5f && all[24 + 8 + 6] == 0);
  CHECK(cuArrayDestroy(line));
  EXPECT(cuArrayDestroy(line) == CUDA_ERROR_INVALID_HANDLE);
  EXPECT(cuMemcpyAtoH(back, line, 0, 4) == CUDA_ERROR_INVALID_HANDLE);
}

static void Refused(void) {
  CUarray array;
  CUDA_ARRAY3D_DESCRIPTOR good = {4, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0}, bad = good;
  bad.NumChannels = 3;
  EXPECT(cuArray3DCreate(&array, &bad) == CUDA_ERROR_INVALID_VALUE);
  bad = good, bad.Width = 0;
  EXPECT(cuArray3DCreate(&array, &bad) == CUDA_ERROR_INVALID_VALUE);
  bad = good, bad.Format = CU_AD_FORMAT_NV12;
  EXPECT(cuArray3DCreate(&array, &bad) == CUDA_ERROR_INVALID_VALUE);
  bad = good, bad.Flags = CUDA_ARRAY3D_CUBEMAP, bad.Depth = 5;
  EXPECT(cuArray3DCreate(&array, &bad) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuArray3DCreate(&array, &good));
  CUDA_RESOURCE_DESC resource = {0}, shown;
  resource.res.array.hArray = array;
  CUsurfObject surface;
  CUtexObject texture;
  EXPECT(cuSurfObjectCreate(&surface, &resource) == CUDA_ERROR_INVALID_VALUE);  // no such flag
  CUDA_TEXTURE_DESC linear = {0}, description;
  linear.filterMode = CU_TR_FILTER_MODE_LINEAR;
  linear.flags = CU_TRSF_READ_AS_INTEGER;
  EXPECT(cuTexObjectCreate(&texture, &resource, &linear, NULL) == CUDA_ERROR_INVALID_VALUE);
  linear.flags = 0;
  CHECK(cuTexObjectCreate(&texture, &resource, &linear, NULL));
  CHECK(cuTexObjectGetResourceDesc(&shown, texture));
  EXPECT(shown.res.array.hArray == array);
  CHECK(cuTexObjectGetTextureDesc(&description, texture));
  EXPECT(description.filterMode == CU_TR_FILTER_MODE_LINEAR);
  CHECK(cuTexObjectDestroy(texture));
  EXPECT(cuTexObjectGetTextureDesc(&description, texture) == CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr memory;
  CHECK(cuMemAlloc(&memory, 4096));
  CUDA_RESOURCE_DESC rows = {CU_RESOURCE_TYPE_PITCH2D};
  rows.res.pitch2D.devPtr = memory, rows.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
  rows.res.pitch2D.numChannels = 1, rows.res.pitch2D.width = 7, rows.res.pitch2D.height = 2;
  rows.res.pitch2D.pitchInBytes = 36;
  EXPECT(cuTexObjectCreate(&texture, &rows, &linear, NULL) == CUDA_ERROR_INVALID_VALUE);
  rows.res.pitch2D.pitchInBytes = 64, rows.res.pitch2D.devPtr = memory + 4;
  EXPECT(cuTexObjectCreate(&texture, &rows, &linear, NULL) == CUDA_ERROR_INVALID_VALUE);
  rows.res.pitch2D.devPtr = memory;
  CHECK(cuTexObjectCreate(&texture, &rows, &linear, NULL));
}

static void Mipmaps(void) {
  CUmipmappedArray mipmap;
  CUarray level;
  CUDA_ARRAY3D_DESCRIPTOR shape = {4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0}, shown;
  CHECK(cuMipmappedArrayCreate(&mipmap, &shape, 3));
  EXPECT(cuMipmappedArrayGetLevel(&level, mipmap, 3) == CUDA_ERROR_INVALID_VALUE);
  for (int i = 0; i < 3; ++i) {
    CHECK(cuMipmappedArrayGetLevel(&level, mipmap, i));
    CHECK(cuArray3DGetDescriptor(&shown, level));
    EXPECT(shown.Width == 4 >> i && shown.Height == 4 >> i);
    float texels[16];
    for (int k = 0; k < 16; ++k) texels[k] = 100 * (i + 1);
    CUDA_MEMCPY2D copy = {0};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = texels;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = level;
    copy.WidthInBytes = 4 * (4 >> i), copy.Height = 4 >> i;
    CHECK(cuMemcpy2D(&copy));
  }
  CUmodule module;
  CUfunction levels;
  CHECK(cuModuleLoadData(&module, kLevels));
  CHECK(cuModuleGetFunction(&levels, module, "levels"));
  CUdeviceptr out;
  CHECK(cuMemAlloc(&out, 64));
  CUDA_RESOURCE_DESC resource = {CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
  resource.res.mipmap.hMipmappedArray = mipmap;
  for (int filter = 0; filter < 2; ++filter) {
    CUDA_TEXTURE_DESC description = {0};
    description.flags = CU_TRSF_NORMALIZED_COORDINATES;
    description.mipmapFilterMode = filter;
    description.maxMipmapLevelClamp = 1.75f;
    CUtexObject texture;
    CHECK(cuTexObjectCreate(&texture, &resource, &description, NULL));
    void* arguments[] = {&out, &texture};
    CHECK(cuLaunchKernel(levels, 1, 1, 1, 16, 1, 1, 0, NULL, arguments, NULL));
    float got[16];
    CHECK(cuMemcpyDtoH(got, out, sizeof got));
    for (int i = 0; i < 16; ++i) {
      float level = i / 4.0f < 1.75f ? i / 4.0f : 1.75f;
      EXPECT(got[i] == (filter ? 100 + 100 * level : 100 + 100 * (int)(level + 0.5f)));
    }
  }
  CHECK(cuMipmappedArrayDestroy(mipmap));
}

int main(void) {
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  Copies();
  Refused();
  Mipmaps();
  puts("done");
  return 0;
}
