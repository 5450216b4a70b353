// A kernel that prints, between two lines of the program, which then exits without cleaning up.
#include "program.h"

static const char* const kPrint =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);\n"
    ".global .align 1 .b8 text[11] = {116, 104, 114, 101, 97, 100, 32, 37, 100, 10, 0};\n"
    ".visible .entry print() {\n"
    "  .local .align 8 .b8 depot[8]; .reg .b32 %r<4>; .reg .b64 %d<6>;\n"
    "  mov.u32 %r1, %tid.x; mov.u64 %d1, depot; cvta.local.u64 %d2, %d1;\n"
    "  st.local.u32 [%d1], %r1; mov.u64 %d3, text; cvta.global.u64 %d4, %d3;\n"
    "  { .param .b64 p0; st.param.b64 [p0], %d4; .param .b64 p1; st.param.b64 [p1], %d2;\n"
    "    .param .b32 q; call.uni (q), vprintf, (p0, p1); ld.param.b32 %r2, [q]; }\n"
    "  ret;\n}\n";

int main(void) {
  CHECK(cuInit(0));
  CUcontext context;
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  CUmodule module;
  CUfunction print;
  CHECK(cuModuleLoadData(&module, kPrint));
  CHECK(cuModuleGetFunction(&print, module, "print"));
  puts("before");
  CHECK(cuLaunchKernel(print, 1, 1, 1, 2, 1, 1, 0, NULL, NULL, NULL));
  puts("after");
  return 3;
}
