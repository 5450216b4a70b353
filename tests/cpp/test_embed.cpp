// The macros for embedded images. Linked with test_embed_second.cpp; each has an image "kernels"
// of its own, merged in under local symbols.
#include <thread>
#include <vector>

#include "check.h"

CULAUNCH_EMBED_CUBIN(kernels);
CULAUNCH_EMBED_CUBIN(shared);
CULAUNCH_EMBED_CUBIN(shared);  // as in a unity build of two files
static const unsigned char kBroken[] = {1, 2, 3, 4, 5};
CULAUNCH_EMBED_CUBIN_FROM_BYTES(broken, kBroken);
static const char kText[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry from_bytes()\n{ ret; }\n";
CULAUNCH_EMBED_CUBIN_FROM_BYTES(text, kText);
static const char kPassing[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry from_bytes()\n{ ret; }\n";
CULAUNCH_EMBED_CUBIN_FROM_BYTES(passing, kPassing);

std::vector<std::string> KernelsOfSecond();
const culaunch::Module& SharedOfSecond();

static void UsedByManyThreadsAtOnce() {
  FailNext("cuLibraryLoadData", CUDA_ERROR_OUT_OF_MEMORY);
  const auto use = []() -> const culaunch::Kernel& {
    return CULAUNCH_GET_KERNEL(kernels, "empty");
  };
  CHECK_THROWS(use(), kDriver, "embedded image \"kernels\": ");
  std::vector<std::thread> threads;
  std::vector<const culaunch::Kernel*> seen(8);
  for (size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&, i] {
      seen[i] = &use();
      (*seen[i])({1, 1});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const culaunch::Kernel* kernel : seen) CHECK(kernel == seen[0]);
  CHECK(CountRecorded("load ") == 1);
  CHECK(Recorded("(relaxed)\n"));  // the first use may be under graph capture
  CHECK(CountRecorded("find empty") == 1);
  CHECK(CountRecorded("launch empty") == 8);
}

static void OneImageIsLoadedOnceForAllFiles() {
  ClearRecord();
  const culaunch::Module& here = CULAUNCH_GET_MODULE(shared);
  CHECK((&CULAUNCH_GET_MODULE(shared) == &here && &SharedOfSecond() == &here));
  CHECK(CountRecorded("load ") == 1);
}

static void AnImageIsUnloadedWithItsLastUser() {
  ClearRecord();
  {
    culaunch::SharedModule first = CULAUNCH_SHARE_MODULE(passing);
    const culaunch::SharedModule second = CULAUNCH_SHARE_MODULE(passing);
    CHECK(&*first == &*second);
    {
      const culaunch::SharedModule third = std::move(first);
      (*third)["from_bytes"]({1, 1});
    }
    CHECK(CountRecorded("load ") == 1 && !Recorded("unload"));
    second->GetKernel("from_bytes")({1, 1});
  }
  CHECK(CountRecorded("unload") == 1);
  {
    const culaunch::SharedModule again = CULAUNCH_SHARE_MODULE(passing);
    CHECK(CountRecorded("load ") == 2);
    CULAUNCH_GET_KERNEL(passing, "from_bytes")({1, 1});  // a user that stays
  }
  CHECK(CountRecorded("load ") == 2 && CountRecorded("unload") == 1);
  const auto wrong = CULAUNCH_TRY_SHARE_MODULE(broken);
  CHECK(!wrong && std::strstr(wrong.what(), "embedded image \"broken\": ") != nullptr);
}

int main() {
  CHECK(Record().empty());  // nothing is loaded before it is used
  UsedByManyThreadsAtOnce();
  CHECK((CULAUNCH_GET_MODULE(kernels).KernelNames().size() == 3));
  CHECK((KernelsOfSecond() == std::vector<std::string>{"of_second"}));
  OneImageIsLoadedOnceForAllFiles();
  AnImageIsUnloadedWithItsLastUser();
  CULAUNCH_GET_KERNEL(text, "from_bytes")({1, 1});
  CHECK(Recorded("launch from_bytes"));
  CHECK_THROWS(CULAUNCH_GET_KERNEL(broken, "k"), kCall,
               "embedded image \"broken\": the bytes are not an image");
  CHECK_THROWS(CULAUNCH_GET_KERNEL(text, "none"), kCall, "no kernel \"none\"; it has from_bytes");
}
