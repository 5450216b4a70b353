// CULAUNCH_CHECK, and a driver that is not there, too old, or broken.
#include "check.h"
#include "culaunch/demangle.h"

using culaunch::Driver;

static CUresult Fails() { return CUDA_ERROR_INVALID_VALUE; }

int main() {
  const std::string path = std::getenv("CULAUNCH_DRIVER");
  CHECK_THROWS(Driver::Open("/nowhere/libcuda.so"), kNoDriver,
               "the chosen driver \"/nowhere/libcuda.so\" cannot be loaded (");
  CHECK_THROWS(Driver::Open("nonsense"), kNoDriver, "CULAUNCH_DRIVER must be \"cuda\" or the path");
  CHECK_THROWS(Driver::Open("emulator"), kNoDriver, "which is written in Python");
  Dl_info libc;
  CHECK(dladdr(reinterpret_cast<void*>(&std::abort), &libc) != 0);
  CHECK_THROWS(Driver::Open(libc.dli_fname), kNoDriver,
               " is not a CUDA driver: it has no function cuInit");
  setenv("FAKE_DRIVER_VERSION", "12030", 1);
  CHECK_THROWS(Driver::Open(path), kNoDriver, "for CUDA 12.4 or newer (got one for CUDA 12.3)");
  unsetenv("FAKE_DRIVER_VERSION");
  FailNext("cuInit", CUDA_ERROR_INVALID_VALUE);
  CHECK_THROWS(Driver::Get(), kNoDriver, "cannot be initialized: CUDA_ERROR_INVALID_VALUE (1)");
  CHECK(Driver::Get().name() == path);  // the next try is a new one

  // Each part repeats the one before three times: demangled it would fill the memory.
  std::string huge = "_Z1k1aIiiE";
  for (const char digit : std::string("0123456789ABCDEFGHIJKLMNOPQRSTUV")) {
    const std::string part = std::string("S") + digit + "_";
    huge += "S_I" + part + part + part + "E";
  }
  CHECK(culaunch::Demangle(huge) == huge);
  CHECK(culaunch::Demangle(huge.substr(0, 49)).size() == 593);
  CHECK(culaunch::Demangle("_Z5scaleIfEvPT_PKS0_i") ==
        "void scale<float>(float*, float const*, int)");

  CULAUNCH_CHECK(CUDA_SUCCESS);
  CHECK_THROWS([] { CULAUNCH_CHECK(Fails()); }(), kDriver, "test_errors.cpp:");
  CHECK_THROWS([] { CULAUNCH_CHECK(Fails()); }(), kDriver,
               "Fails() failed: CUDA_ERROR_INVALID_VALUE (1): as the fake driver was told");
  try {
    CULAUNCH_CHECK(Fails());
  } catch (const std::runtime_error& error) {
    const auto* own = dynamic_cast<const culaunch::Error*>(&error);
    CHECK(own != nullptr && own->code() == CUDA_ERROR_INVALID_VALUE);
    CHECK(own->name() == "CUDA_ERROR_INVALID_VALUE");
  }
  FailNext("cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY);
  const culaunch::DeviceGuard guard(Driver::Get(), 0);
  CHECK(guard.code() == CUDA_ERROR_OUT_OF_MEMORY);
}
