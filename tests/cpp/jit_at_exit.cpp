// Where a culaunch::Jit stands when the process ends, and what becomes of its modules then.
//
//   jit_at_exit scope|static|new
#include <culaunch/jit.h>

#include <cstdio>
#include <cstring>

static const char* kSource = "extern \"C\" __global__ void k(int* x) { *x = 1; }";

static void Use(culaunch::Jit& jit) {
  culaunch::CompileOptions options;
  options.arch = {"sm_80"};
  jit.Module(kSource, {}, options);
}

int main(int count, char** words) {
  const char* how = count > 1 ? words[1] : "";
  if (std::strcmp(how, "scope") == 0) {
    culaunch::Jit jit;
    Use(jit);
  } else if (std::strcmp(how, "static") == 0) {
    static culaunch::Jit jit;
    Use(jit);
  } else {
    static culaunch::Jit& jit = *new culaunch::Jit;
    Use(jit);
  }
  std::puts("the end of main");
}
