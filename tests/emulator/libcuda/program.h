// The parts that test programs share: checks that end the program, and a kernel in PTX.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                       \
  do {                                                                    \
    CUresult code_ = (call);                                              \
    if (code_ != CUDA_SUCCESS) {                                          \
      printf("%s:%d: %s is %d\n", __FILE__, __LINE__, #call, (int)code_); \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

#define EXPECT(condition)                                        \
  do {                                                           \
    if (!(condition)) {                                          \
      printf("%s:%d: not %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                   \
    }                                                            \
  } while (0)

// add(int* y, const int* x, int n): y[i] += x[i] for i < n; variable `offset` is added, too.
static const char* const kAdd =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .align 4 .u32 offset = 5;\n"
    ".visible .entry add(.param .u64 y, .param .u64 x, .param .u32 n) {\n"
    "  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>;\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "  mad.lo.s32 %r4, %r1, %r2, %r3; ld.param.u32 %r5, [n];\n"
    "  setp.ge.s32 %p, %r4, %r5; @%p bra done;\n"
    "  ld.param.u64 %d1, [y]; ld.param.u64 %d2, [x]; mul.wide.s32 %d3, %r4, 4;\n"
    "  add.s64 %d1, %d1, %d3; add.s64 %d2, %d2, %d3;\n"
    "  ld.global.u32 %r6, [%d2]; ld.global.u32 %r7, [%d1]; add.s32 %r6, %r6, %r7;\n"
    "  ld.global.u32 %r7, [offset]; add.s32 %r6, %r6, %r7;\n"
    "  st.global.u32 [%d1], %r6;\n"
    "done: ret;\n}\n";
