// culaunch::Jit on the fake driver: compiles, keeps, loads, launches, refuses. In its own
// directory.
#include <cuda_fp16.h>
#include <culaunch/jit.h>
#include <culaunch/jit/base/fork_mutex.h>
#include <culaunch/jit/link_input.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "check.h"

namespace {

using culaunch::Arguments;
using culaunch::CompileError;
using culaunch::CompileOptions;
using culaunch::Error;
using culaunch::Jit;

constexpr char kScale[] = R"(
template <class T, int N>
__global__ void scale(T* y, const T* x, T a, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * N;
  for (int k = 0; k < N; ++k) if (i + k < n) y[i + k] = a * x[i + k];
}
struct Shape { long long sizes[4]; };
extern "C" __global__ void reshape(float* y, Shape shape, const float* x) {
  y[threadIdx.x] = x[shape.sizes[0]];
}
)";

std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool IsFile(const std::string& path) { return std::ifstream(path).good(); }

void Write(const char* path, const char* text) { std::ofstream(path) << text; }

// The tests name their architecture, unless they are about the device's.
CompileOptions Options() {
  CompileOptions options;
  options.arch = {"sm_80"};
  return options;
}

void LaunchesInstancesByName() {
  Jit jit;
  auto& module = jit.Module(kScale, {"scale<float, 4>", "scale<double, 1>"});
  float* pointer = nullptr;
  module.GetKernel("scale<float, 4>")({{8}, {64}}, pointer, pointer, 2.0f, 100);
  module.GetKernel("scale<double, 1>")({{8}, {64}}, nullptr, nullptr, 2.0, 100);
  CHECK(&jit.Module(kScale, {"scale<float, 4>", "scale<double, 1>"}) == &module);
  CHECK(&jit.Module(kScale, {"scale<float, 4>"}) != &module);
  // Types are checked: the second is a double.
  const std::string said = MessageOf(
      [&] { module.GetKernel("scale<float, 4>")({{8}, {64}}, pointer, pointer, 2.0, 100); });
  CHECK(said.find("argument 2") != std::string::npos);
  // The device's architecture, exactly: the fake driver's is 9.0.
  CompileOptions named;
  named.arch = {"native"};
  CHECK(jit.Key(kScale, {}, named) == jit.Key(kScale));
  named.arch = {"sm_90"};
  CHECK(jit.Key(kScale, {}, named) == jit.Key(kScale));
  named.arch = {"native_a"};
  CHECK(jit.Key(kScale, {}, named) != jit.Key(kScale));
}

void TakesArgumentsMadeAtRunTime() {
  Jit jit;
  auto& module = jit.Module(kScale, {"scale<float, 1>"});
  const culaunch::Kernel reshape = module.GetKernel("reshape");
  float* pointer = nullptr;
  struct Shape {
    std::array<long long, 4> sizes;
  };
  reshape({{1}, {32}}, pointer, Shape{{1, 2, 3, 4}}, nullptr);
  Arguments arguments;
  arguments.Add(pointer).AddArray<long long, 4>(std::vector<int>{3, 5}).Add(nullptr);
  reshape.Launch({{1}, {32}}, arguments);
  arguments.Clear();
  arguments.AddAll(pointer, pointer, 2.0f, 8);
  const std::string said = MessageOf([&] { reshape.Launch({{1}, {32}}, arguments); });
  CHECK(said.find("takes 3 arguments (got 4)") != std::string::npos);
  module.GetKernel("scale<float, 1>").Launch({{1}, {32}}, arguments);
  const std::string too_long =
      MessageOf([&] { arguments.AddArray<int, 2>(std::vector<int>{1, 2, 3}); });
  CHECK(too_long.find("no room") != std::string::npos);
}

void FindsHeaders() {
  Jit jit;
  jit.AddHeader("device/math.cuh",
                "#include \"constants.h\"\n__device__ float f() { return K; }\n");
  jit.AddHeader("device/constants.h", "#define K 2.0f\n");
  mkdir("headers", 0755);
  Write("headers/disk.h", "#define D 1\n");
  jit.AddDirectory("headers");
  const std::string source =
      "#include <device/math.cuh>\n#include <cuda_fp16.h>\n#include \"disk.h\"\n"
      "__global__ void k(float* x, __half h) { *x = f() + D + __half2float(h); }";
  const CompileOptions options = Options();
  const std::string before = jit.Key(source, {}, options);
  CHECK(!jit.Compile(source, {}, options).data.empty());
  Write("headers/disk.h", "#define D 20\n");
  CHECK(jit.Key(source, {}, options) != before);
  Write("headers/disk.h", "#define D 1\n");
  CHECK(jit.Key(source, {}, options) == before);
  jit.AddHeader("device/constants.h", "#define K 3.0f\n");
  CHECK(jit.Key(source, {}, options) != before);
  Write("headers/own.cu", "#include \"disk.h\"\n__global__ void k(int* x) { *x = D; }");
  CHECK(!jit.CompileFile("headers/own.cu", {}, options).data.empty());
  CHECK(MessageOf([&] { jit.AddDirectory("nothere"); }).find("nothere") != std::string::npos);
  CHECK(MessageOf([&] { jit.AddHeader("../x.h", ""); }).find("../x.h") != std::string::npos);
}

void KeepsWhatItCompiled() {
  int warnings = 0;
  culaunch::JitOptions options;
  options.cache.path = "own-cache";
  options.cache.warn = [&](const std::string&) { ++warnings; };
  const std::string key = Jit(options).Key(kScale, {"scale<float, 2>"}, Options());
  const std::string entry = "own-cache/" + key + ".entry";
  const culaunch::Image first = Jit(options).Compile(kScale, {"scale<float, 2>"}, Options());
  CHECK(IsFile(entry));
  CHECK(Jit(options).Compile(kScale, {"scale<float, 2>"}, Options()).data == first.data);
  CHECK(warnings == 0);
  // One that is not what was written is compiled again, with a warning.
  std::fstream(entry) << "culcache?";
  CHECK(Jit(options).Compile(kScale, {"scale<float, 2>"}, Options()).data == first.data);
  CHECK(warnings == 1);
  // A shipped one serves without being written to.
  culaunch::JitOptions shipped;
  shipped.cache.path = "other-cache";
  shipped.cache.bundles.emplace(1, "own-cache");
  CHECK(Jit(shipped).Compile(kScale, {"scale<float, 2>"}, Options()).data == first.data);
  CHECK(!IsFile("other-cache/" + key + ".entry"));
  // Others may write to it: not used.
  CHECK(chmod("own-cache", 0777) == 0);
  Jit(options).Compile(kScale, {"scale<float, 2>"}, Options());
  CHECK(warnings == 2);
  CHECK(chmod("own-cache", 0700) == 0);
}

void CompilesInManyThreads() {
  Jit jit;
  std::vector<std::thread> threads;
  std::array<culaunch::Module*, 6> modules{};
  for (size_t i = 0; i < modules.size(); ++i) {
    threads.emplace_back([&jit, &modules, i] {
      const std::string name = "scale<int, " + std::to_string(i % 3 + 1) + ">";
      modules[i] = &jit.Module(kScale, {name});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 3; ++i) CHECK(modules[i] == modules[i + 3]);
  CHECK(modules[0] != modules[1]);
}

void SaysWhatIsWrong() {
  Jit jit;
  const auto of = [&](const char* source, const std::vector<std::string>& names,
                      CompileOptions options) {
    return MessageOf([&] { jit.Compile(source, names, options); });
  };
  try {
    jit.Compile("__global__ void k(int* x) {\n  *x = oops;\n}", {}, Options());
    CHECK(false);
  } catch (const CompileError& error) {
    const std::string said = error.what();
    CHECK(said.find("kernel.cu(2): error: identifier \"oops\" is undefined") == 0);
    CHECK(said.find("\n      2 |   *x = oops;\n") != std::string::npos);
    CHECK(said.find("options: --gpu-architecture=sm_80") != std::string::npos);
    CHECK(error.log().find("oops") != std::string::npos);
    CHECK(error.kind() == culaunch::ErrorKind::kCall);
  }
  CompileOptions options = Options();
  options.std = "c++99";
  CHECK(of(kScale, {}, options).find("the option at fault is --std=c++99") != std::string::npos);
  options = Options();
  options.extra_options = {"--no-such-option"};
  CHECK(of(kScale, {}, options).find("at fault is --no-such-option") != std::string::npos);
  options.extra_options = {"-I/tmp"};
  CHECK(of(kScale, {}, options).find("use include_dirs") != std::string::npos);
  options = Options();
  options.arch = {"sm_9"};
  CHECK(of(kScale, {}, options).find("not an architecture") != std::string::npos);
  options.arch = {"sm_11"};
  CHECK(of(kScale, {}, options).find("which supports sm_") != std::string::npos);
  CHECK(of(kScale, {"nothere<1>"}, Options()).find("names no kernel") != std::string::npos);
  CHECK(of("#include <vector>\n__global__ void k() {}", {}, Options())
            .find("device code has no equivalent: leave it out") != std::string::npos);
  CHECK(of("#include <cmath>\n__global__ void k() {}", {}, Options())
            .find("include <cuda/std/cmath>") != std::string::npos);
  CHECK(of(" \n", {}, Options()).find("source is empty") != std::string::npos);
  options = Options();
  options.lto = true;
  CHECK(MessageOf([&] { jit.Module(kScale, {}, options); }).find("linked") != std::string::npos);
  const std::string nowhere = MessageOf([] {
    culaunch::JitOptions wrong;
    wrong.nvrtc = "/nowhere/libnvrtc.so";
    Jit(wrong).Compile(kScale, {}, Options());
  });
  CHECK(nowhere.find("/nowhere/libnvrtc.so") != std::string::npos);
}

void PassesHalfTypes() {
  Jit jit;
  auto& module = jit.Module("#include <cuda_fp16.h>\n__global__ void k(__half* y, __half a) {}");
  const culaunch::Kernel kernel = module.GetKernel("_Z1kP6__halfS_");
  const __half half = __float2half(2.0f);
  kernel({{1}, {32}}, nullptr, half);
  kernel.Launch({{1}, {32}}, Arguments().AddAll(nullptr, half));
  CHECK(MessageOf([&] { kernel({{1}, {32}}, nullptr, 2.0f); }).find("2 bytes") !=
        std::string::npos);
}

void KeepsPrecompiledHeaders() {
  culaunch::JitOptions uncached;
  uncached.cache.enabled = false;
  Jit jit(uncached);
  CompileOptions options = Options();
  options.pch = true;
  const char* const source =
      "#include <cuda_fp16.h>\n#include \"own.h\"\n"
      "__global__ void k(__half* x) { *x = __half(N); }";
  jit.AddHeader("own.h", "#define N 1\n");
  const std::string first = jit.Compile(source, {}, options).data;
  CHECK(jit.Compile(source, {}, options).data == first);
  // NVRTC would take what it has precompiled for a header that has changed.
  jit.AddHeader("own.h", "#define N 2\n");
  const std::string second = jit.Compile(source, {}, options).data;
  options.pch = false;
  CHECK(second != first && jit.Compile(source, {}, options).data == second);
}

void MakesPtxFatbinsAndLto() {
  Jit jit;
  CompileOptions options;
  options.arch = {"compute_80"};
  CHECK(jit.Compile(kScale, {}, options).data.find(".target sm_80") != std::string::npos);
  options.arch = {"compute_90", "sm_80"};
  CHECK(jit.Compile(kScale, {}, options).data.compare(0, 4, "\x50\xed\x55\xba") == 0);
  options.arch = {"sm_80"};
  options.lto = true;
  CHECK(jit.Compile(kScale, {}, options).data.compare(0, 4, "\x50\xed\x55\xba") == 0);
}

// As a full disk or a quota does: each write past so many bytes fails midway.
void SavesWholeOrNotAtAll() {
  Jit jit;
  const culaunch::Image image = jit.Compile(kScale, {}, Options());
  std::ofstream("kept.image") << "old";
  struct rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  const struct rlimit less = {16, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &less);
  const std::string said = MessageOf([&] { image.Save("kept.image"); });
  MessageOf([&] { image.Save("new.image"); });
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(said == "cannot write the image kept.image: File too large");
  std::string old;
  std::ifstream("kept.image") >> old;
  CHECK(old == "old");
  CHECK(access("new.image", F_OK) != 0);
  // A link is followed, and a mode stays.
  CHECK(chmod("kept.image", 0600) == 0 && symlink("kept.image", "link.image") == 0);
  image.Save("link.image");
  CHECK(culaunch::Image::FromFile("kept.image").data == image.data);
  struct stat status;
  CHECK(stat("kept.image", &status) == 0 && (status.st_mode & 0777u) == 0600);
  CHECK(lstat("link.image", &status) == 0 && S_ISLNK(status.st_mode));
  image.Save("/dev/null");
  // The next output removes a killed writer's files; those of a live writer stay.
  const std::string left = ".culaunch-56b7a1b6-0.tmp", lives = ".culaunch-56b7a1b6-1.tmp";
  std::ofstream(left.c_str()) << "half";
  const culaunch::jit::Descriptor writer(open(lives.c_str(), O_WRONLY | O_CREAT, 0600));
  CHECK(flock(writer.get(), LOCK_EX) == 0);
  image.Save("kept.image");
  CHECK(access(left.c_str(), F_OK) != 0 && access(lives.c_str(), F_OK) == 0);
  CHECK(unlink(lives.c_str()) == 0);
  CHECK(MessageOf([&] { image.Save("nowhere/k.image"); }).find("No such file") !=
        std::string::npos);
  for (const std::string& name : culaunch::jit::NamesIn(".")) {
    CHECK(name.find(".tmp") == std::string::npos);
  }
}

void LinksImages() {
  constexpr char kCaller[] =
      "extern \"C\" __device__ float twice(float x);\n"
      "template <class T> __global__ void k(T* y) { *y = twice(*y); }";
  constexpr char kCallee[] = "extern \"C\" __device__ float twice(float x) { return 2 * x; }";
  Jit jit;
  CompileOptions options = Options();
  options.lto = true;
  const culaunch::Image caller = jit.Compile(kCaller, {"k<float>"}, options);
  const culaunch::Image callee = jit.Compile(kCallee, {}, options);
  const culaunch::Image linked = jit.Link({caller, callee}, {{"sm_80"}});
  const culaunch::Module module = linked.Load();
  module.GetKernel("k<float>")({{1}, {32}}, nullptr);
  CHECK(jit.Link({caller, callee}, {{"sm_80"}}).data == linked.data);
  CHECK(jit.Link({caller, callee}, {{"compute_80"}}).data.find(".target sm_80") !=
        std::string::npos);
  // The device's architecture, if none is said: here PTX of LTO-IR of it.
  CHECK(jit.LinkKey({caller, callee}) == jit.LinkKey({caller, callee}, {{"sm_90"}}));
  // Files hold names and signatures too.
  for (const auto& arch : {"sm_80", "compute_80"}) {
    const culaunch::Image image = jit.Link({caller, callee}, {{arch}});
    image.Save("linked.image");
    const culaunch::Image read = culaunch::Image::FromFile("linked.image");
    CHECK(read.data == image.data && read.names == image.names);
  }
  caller.Save("caller.image");
  CHECK(jit.Link({culaunch::LinkInput::File("caller.image"), callee}, {{"sm_80"}}).data ==
        linked.data);

  const auto of = [&](const std::vector<culaunch::LinkInput>& inputs,
                      const culaunch::LinkOptions& link) {
    return MessageOf([&] { jit.Link(inputs, link); });
  };
  const auto has = [](const std::string& said, const char* part) {
    return said.find(part) != std::string::npos;
  };
  CHECK(has(of({}, {{"sm_80"}}), "nothing to link"));
  CHECK(has(of({caller}, {{"sm_80"}}), "linking for sm_80 failed"));
  CHECK(has(of({caller}, {{"sm_80"}}), "twice"));
  CHECK(has(of({caller, callee}, {{"sm_80"}, false, false, 0, {"--nothing"}}), "--nothing"));
  CHECK(has(of({caller, callee}, {{"sm_80"}, false, false, 256, {}}), "maxrregcount"));
  CHECK(has(of({caller, callee}, {{"sm_999"}}), "refused -arch=sm_999"));
  CHECK(has(of({culaunch::LinkInput::File("nothing.o")}, {{"sm_80"}}), "cannot read"));
  CHECK(has(of({culaunch::Image()}, {{"sm_80"}}), "input 0 is empty"));
  culaunch::Image junk;
  junk.data = "junk";
  CHECK(has(of({junk}, {{"sm_80"}}), "not an image"));
  options.lto = false;
  options.relocatable = true;
  const culaunch::Image object = jit.Compile(kCallee, {}, options);
  CHECK(has(of({object, object}, {{"sm_80"}}), "'twice' is defined in input 0 and in input 1"));
  CHECK(has(of({object}, {{"compute_80"}}), "only images compiled with lto"));
  // An object that is cut off, or changed anywhere in its tables, is an error or another object.
  for (size_t size = 0; size < object.data.size(); size += 1 + object.data.size() / 97) {
    junk.data = object.data.substr(0, size);
    MessageOf([&] { culaunch::jit::StrongSymbols(junk.data, "cut"); });
  }
  for (size_t at = 0; at < object.data.size(); at += 5) {
    junk.data = object.data;
    junk.data[at] = static_cast<char>(junk.data[at] ^ 0xa5);
    MessageOf([&] { culaunch::jit::StrongSymbols(junk.data, "changed"); });
    MessageOf([&] { culaunch::jit::HasLtoIr(junk.data); });
    junk.data = callee.data;
    junk.data[at % junk.data.size()] ^= 0x5a;
    culaunch::jit::HasLtoIr(junk.data);
  }
  const std::string nowhere = MessageOf([&] {
    culaunch::JitOptions wrong;
    wrong.nvjitlink = "/nowhere";
    Jit(wrong).Link({caller, callee}, {{"sm_80"}});
  });
  CHECK(has(nowhere, "nvJitLink is not at /nowhere"));
}

void GivesErrorsAsValues() {
  Jit jit;
  auto compiled = jit.TryCompile(kScale, {}, Options());
  CHECK(compiled.ok() && !compiled->data.empty());
  CHECK(!jit.TryCompile("oops", {}, Options()).ok());
  CHECK(jit.TryCompileFile("nothere.cu").what() == std::string("cannot read the source ") + [] {
    char* const working = getcwd(nullptr, 0);
    const std::string path = working;
    std::free(working);
    return path + "/nothere.cu";
  }());
  auto module = jit.TryModule(kScale, {"scale<float, 4>"});
  CHECK(module.ok() && (*module)->HasKernel("scale<float, 4>"));
  CHECK(!jit.TryModuleFromFile("nothere.cu").ok());
  CHECK(!jit.TryLink({}).ok());
  CHECK(jit.TryAddHeader("a.h", "").ok() && !jit.TryAddHeader("/a.h", "").ok());
  CHECK(!jit.TryAddDirectory("nothere").ok());
}

// A fork while another thread holds the mutex leaves the child a free one.
void IsFreeInAFork() {
  culaunch::jit::ForkMutex mutex;
  std::mutex order;
  order.lock();
  std::atomic<bool> is_held{false};
  std::thread holder([&] {
    const auto lock = mutex.Lock();
    is_held = true;
    order.lock();  // until the fork is done
  });
  while (!is_held) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    const auto lock = mutex.Lock();
    _exit(lock.owns_lock() ? 0 : 1);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  order.unlock();
  holder.join();
}

}  // namespace

int main() {
  LaunchesInstancesByName();
  TakesArgumentsMadeAtRunTime();
  FindsHeaders();
  KeepsWhatItCompiled();
  CompilesInManyThreads();
  SaysWhatIsWrong();
  PassesHalfTypes();
  KeepsPrecompiledHeaders();
  MakesPtxFatbinsAndLto();
  SavesWholeOrNotAtAll();
  LinksImages();
  GivesErrorsAsValues();
  IsFreeInAFork();
}
