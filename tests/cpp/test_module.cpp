// culaunch::Module: loading, finding, naming, unloading.
#include <fstream>

#include "check.h"

using culaunch::Module;

static Module Load(const std::string& bytes) { return Module(bytes.data(), bytes.size()); }

static void LoadsFindsAndUnloads() {
  ClearRecord();
  {
    const Module module = Load(Ptx());
    CHECK(module.IsLoaded());
    CHECK((module.KernelNames() == std::vector<std::string>{"scale", "empty", "with_struct"}));
    CHECK(module["scale"].name() == "scale");
    CHECK(module.GetKernel("scale").parameters().size() == 4);
    CHECK(CountRecorded("find scale\n") == 1);  // asked once
    CHECK_THROWS(module["missing"], kCall, "no kernel \"missing\"; it has scale empty with_struct");
  }
  CHECK(CountRecorded("load ") == 1);
  CHECK(CountRecorded("unload") == 1);
}

static void FromFile() {
  std::ofstream("module.ptx") << Ptx();
  const Module module = Module::FromFile("module.ptx");
  CHECK(module.KernelNames().size() == 3);
  CHECK_THROWS(Module::FromFile("none.ptx"), kCall, "cannot open the image none.ptx");
}

static void AModuleThatWasMovedFromSaysSo() {
  Module first = Load(Ptx());
  const Module second = std::move(first);
  first.Unload();
  first.Release();
  CHECK(!first.IsLoaded() && first.handle() == nullptr && second.IsLoaded());
  CHECK_THROWS(first["scale"], kCall, "the module was moved from");
  CHECK_THROWS(first.HasKernel("scale"), kCall, "the module was moved from");
  CHECK_THROWS(first.KernelNames(), kCall, "the module was moved from");
  CHECK_THROWS(first.GetGlobal("x", 0), kCall, "the module was moved from");
}

static void DamagedMetadata() {
  const std::string mark = "\n// culaunch: ";
  for (const char* text : {"{\"names\":{\"a\":1}}", "{\"names\":}", "{\"names\":{\"a\":\"b}", "{}}",
                           "{\"signatures\":{\"a\":{}}}", "{\"x\":[[[[}"}) {
    CHECK_THROWS(Load(Ptx() + mark + text + "\n"), kCall, "metadata is damaged");
  }
  const Module named =
      Load(Ptx() + mark + "{\"names\":{\"s\\u00e9\\ud83d\\ude00\\n\":\"scale\"}}\n");
  CHECK(named["s\xc3\xa9\xf0\x9f\x98\x80\n"].name() == "scale");
}

static void MovesAndReleases() {
  ClearRecord();
  {
    Module first = Load(Ptx());
    Module second = std::move(first);
    CHECK(second["empty"].Launch(nullptr, 1, 1, nullptr) == CUDA_SUCCESS);
    Module third = Load(Ptx());
    third = std::move(second);
    third.Release();
  }
  CHECK(CountRecorded("load ") == 2);
  CHECK(CountRecorded("unload") == 1);
}

static void KernelsOfAnUnloadedModuleSaySo() {
  Module module = Load(Ptx());
  const culaunch::Kernel kernel = module["empty"];
  module.Unload();
  module.Unload();
  CHECK(kernel.Launch(nullptr, 1, 1, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK_THROWS(kernel(culaunch::LaunchConfig(1, 1)), kCall, "Its module was unloaded");
  CHECK_THROWS(module["empty"], kCall, "the module was unloaded");
}

static void OptionsGoToTheDriver() {
  ClearRecord();
  culaunch::ModuleOptions options;
  options.Jit(CU_JIT_MAX_REGISTERS, 32).Jit(CU_JIT_GENERATE_LINE_INFO, 1);
  options.Library(CU_LIBRARY_BINARY_IS_PRESERVED, 1);
  const Module module(Ptx().data(), Ptx().size(), options);
  CHECK(Recorded("load scale empty with_struct jit0=32 jit13=1 option1=1\n"));
  // A log of the caller's own takes the place of the module's, whose text the error has no more.
  char log[64] = "";
  options.Jit(CU_JIT_ERROR_LOG_BUFFER, log).Jit(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, sizeof log);
  const Module logged(Ptx().data(), Ptx().size(), options);
  culaunch::ModuleOptions many;
  for (int i = 0; i < 48; ++i) many.Jit(CU_JIT_MAX_REGISTERS, 32);
  CHECK_THROWS(many.Jit(CU_JIT_MAX_REGISTERS, 32), kCall, "at most 48 options");
}

// Nothing here may reach the driver, which is told no size and would read past the end.
static void MalformedImages() {
  ClearRecord();
  CHECK_THROWS(Module(nullptr, 0), kCall, "the image is empty");
  CHECK_THROWS(Load("hello, world"), kCall, "the bytes are not an image");
  CHECK_THROWS(Load(std::string("\x7f"
                                "ELF\x02\x01\x01",
                                7)),
               kCall, "the ELF header");
  std::string elf(64, '\0');
  elf.replace(0, 7,
              std::string("\x7f"
                          "ELF\x02\x01\x01",
                          7));
  elf[16] = 2;
  CHECK_THROWS(Load(elf), kCall, "for machine 0, not for CUDA (190)");
  elf[18] = static_cast<char>(190);
  elf[40] = 64;  // e_shoff
  elf[58] = 64;  // e_shentsize
  elf[60] = 1;   // e_shnum
  CHECK_THROWS(Load(elf), kCall, "the section table of 64 bytes at offset 64 does not fit");
  elf.resize(128);
  elf[64 + 4] = 1;            // sh_type
  elf[64 + 32] = 100;         // sh_size
  elf[64 + 24 + 7] = '\x7f';  // sh_offset, far out
  CHECK_THROWS(Load(elf), kCall, "a section");
  elf[16] = 1;
  CHECK_THROWS(Load(elf), kCall, "relocatable cubin");
  elf[16] = 2;
  elf[64 + 24 + 7] = 0;  // sh_offset
  elf[64 + 24] = 0;
  elf[64 + 32] = 8;  // sh_size
  elf[64 + 40] = 1;  // sh_link
  CHECK_THROWS(Load(elf), kCall, "section 0 of its 1 sections links to number 1");
  elf[64 + 40] = 0;
  elf[64 + 4] = 9;   // sh_type: relocations
  elf[64 + 44] = 2;  // sh_info
  CHECK_THROWS(Load(elf), kCall, "section 0 of its 1 sections relocates number 2");
  elf[64 + 4] = 2;    // sh_type: symbols, here the header's first bytes
  elf[64 + 32] = 24;  // sh_size
  CHECK_THROWS(Load(elf), kCall, "symbol 0 is in section 1 of its 1");
  elf[64 + 4] = 1;   // sh_type
  elf[64 + 32] = 8;  // sh_size
  CHECK_THROWS(Load(elf), kCall, "number 0 should have their names, but does not");
  elf[62] = 3;  // e_shstrndx
  CHECK_THROWS(Load(elf), kCall, "of its 1 sections number 3");
  elf[62] = 0;
  elf[64 + 4] = 3;  // sh_type: a table of strings, which begins with the header's first bytes
  CHECK_THROWS(Load(elf), kCall, "its section 0 should have the names of the sections");
  elf[64] = 9;  // sh_name
  CHECK_THROWS(Load(elf), kCall, "the name of section 0 does not end");
  elf[60] = 0;   // e_shnum
  elf[32] = 64;  // e_phoff
  elf[54] = 56;  // e_phentsize
  elf[56] = 1;   // e_phnum
  CHECK_THROWS(Load(elf), kCall, "program header 0 has type");
  std::string fatbin("\x50\xed\x55\xba\x01\x00\x10\x00\xff\x00\x00\x00\x00\x00\x00\x00", 16);
  CHECK_THROWS(Load(fatbin), kCall, "the fatbin's contents of 255 bytes at offset 16");
  fatbin.resize(16 + 255);
  CHECK_THROWS(Load(fatbin), kCall, "header is too short");
  CHECK(Record().empty());
}

static void TheDriverRefuses() {
  FailNext("cuLibraryLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK_THROWS(Load(Ptx()), kDriver, "CUDA_ERROR_NO_BINARY_FOR_GPU");
}

int main() {
  LoadsFindsAndUnloads();
  FromFile();
  MovesAndReleases();
  AModuleThatWasMovedFromSaysSo();
  DamagedMetadata();
  KernelsOfAnUnloadedModuleSaySo();
  OptionsGoToTheDriver();
  MalformedImages();
  TheDriverRefuses();
}
