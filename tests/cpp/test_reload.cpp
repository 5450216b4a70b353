// Load a plugin, run it, unload it, 1,000 times: nothing stays behind. Usage: reload PLUGIN
#include <dlfcn.h>
#include <malloc.h>

#include "check.h"

template <class Function>
static Function* Find(void* library, const char* name) {
  void* found = dlsym(library, name);
  CHECK(found != nullptr);
  return reinterpret_cast<Function*>(found);
}

static void Cycle(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
  CHECK(library != nullptr);
  CHECK(Find<int()>(library, "plugin_run")() == 0);
  CHECK(Find<int()>(library, "plugin_run")() == 0);
  Find<void()>(library, "plugin_close")();
  CHECK(dlclose(library) == 0);
  // Really gone: a symbol that is STB_GNU_UNIQUE would keep it.
  CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == nullptr);
}

int main(int, char** words) {
  ClearRecord();
  for (int i = 0; i < 50; ++i) Cycle(words[1]);
  CHECK(CountRecorded("load ") == 50);
  CHECK(CountRecorded("unload") == 50);
  CHECK(CountRecorded("launch step") == 100);
  CHECK(CountRecorded("retain 0") == 50);
  CHECK(CountRecorded("release 0") == 50);
  size_t before = 0;
  for (int i = 0; i < 950; ++i) {
    Cycle(words[1]);
    ClearRecord();
    if (i == 50) before = mallinfo2().uordblks;
  }
  const size_t after = mallinfo2().uordblks;
  if (after > before + 900) std::fprintf(stderr, "%zu bytes, then %zu\n", before, after);
  CHECK(after <= before + 900);  // less than a byte for each time
}
