// Two libraries built with different versions of culaunch in one process, symbols global: each
// has a driver of its own, and each catches its own errors.
#include <dlfcn.h>

#include <cstdio>

static int Fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  return 1;
}

int main(int, char** arguments) {
  using Address = const void* (*)();
  using Throws = int (*)();
  const void* drivers[2];
  for (int i = 0; i < 2; ++i) {
    void* library = dlopen(arguments[i + 1], RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) return Fail(dlerror());
    drivers[i] = reinterpret_cast<Address>(dlsym(library, "library_driver"))();
    if (reinterpret_cast<Throws>(dlsym(library, "library_throws_and_catches"))() != 1) {
      return Fail("the error was not caught");
    }
  }
  return drivers[0] != drivers[1] ? 0 : Fail("the libraries share a driver");
}
