#include "compile/signal_handlers.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>

#include "compile/texts.h"

namespace {

using SignalHandler = void (*)(int);

// These libraries call this function instead of signal(). It reports that a signal is ignored, and
// programs then leave the signal unchanged, as the shell's background jobs need it. Restoring it
// later is a no-op.
SignalHandler SignalOfOthers(int number, SignalHandler handler) {
  if (number == SIGINT || number == SIGTERM) return SIG_IGN;
  return std::signal(number, handler);
}

// A loaded library, as the dynamic linker sees it.
class LoadedLibrary {
 public:
  explicit LoadedLibrary(const link_map& map) : base_(map.l_addr) {
    for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_STRTAB:
          names_ = At<char>(entry->d_un.d_ptr);
          break;
        case DT_SYMTAB:
          symbols_ = At<ElfW(Sym)>(entry->d_un.d_ptr);
          break;
        case DT_JMPREL:
          calls_.begin = At<ElfW(Rela)>(entry->d_un.d_ptr);
          break;
        case DT_PLTRELSZ:
          calls_.bytes = entry->d_un.d_val;
          break;
        case DT_RELA:
          others_.begin = At<ElfW(Rela)>(entry->d_un.d_ptr);
          break;
        case DT_RELASZ:
          others_.bytes = entry->d_un.d_val;
          break;
        default:
          break;
      }
    }
  }

  // Redirect its calls of a named function. False if it does not call the function.
  bool Redirect(const char* name, void* target) const {
    const bool is_called = RedirectIn(calls_, name, target);
    return RedirectIn(others_, name, target) || is_called;
  }

 private:
  struct Relocations {
    const ElfW(Rela) * begin;
    size_t bytes;
  };

  // glibc has relocated the file's offsets to addresses; musl has not.
  template <class T>
  const T* At(ElfW(Addr) address) const {
    return reinterpret_cast<const T*>(address < base_ ? base_ + address : address);
  }

  bool RedirectIn(const Relocations& all, const char* name, void* target) const {
    bool is_found = false;
    const size_t count = all.begin == nullptr ? 0 : all.bytes / sizeof *all.begin;
    for (size_t i = 0; i < count; ++i) {
      const ElfW(Rela) & one = all.begin[i];
      const auto symbol = ELF64_R_SYM(one.r_info);
      if (symbol == 0 || std::strcmp(names_ + symbols_[symbol].st_name, name) != 0) continue;
      is_found = Write(reinterpret_cast<void**>(base_ + one.r_offset), target) || is_found;
    }
    return is_found;
  }

  bool Write(void** place, void* target) const {
    const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    auto* const page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(place) & ~(size - 1));
    if (mprotect(page, size, PROT_READ | PROT_WRITE) != 0) return false;
    __atomic_store_n(place, target, __ATOMIC_RELEASE);
    // Other pages stay writable, because the linker writes there when a function is first called.
    if (IsReadOnly(place)) mprotect(page, size, PROT_READ);
    return true;
  }

  // Whether the linker made it read-only after all relocations (RELRO).
  bool IsReadOnly(const void* place) const {
    struct Question {
      uintptr_t base;
      uintptr_t place;
      bool is_read_only;
    } question{base_, reinterpret_cast<uintptr_t>(place), false};
    const auto look = [](dl_phdr_info* info, size_t, void* data) {
      auto* asked = static_cast<Question*>(data);
      if (info->dlpi_addr != asked->base) return 0;
      for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) & segment = info->dlpi_phdr[i];
        const uintptr_t begin = asked->base + segment.p_vaddr;
        const bool has_it = begin <= asked->place && asked->place < begin + segment.p_memsz;
        if (segment.p_type == PT_GNU_RELRO && has_it) asked->is_read_only = true;
      }
      return 1;
    };
    dl_iterate_phdr(look, &question);
    return question.is_read_only;
  }

  uintptr_t base_;
  const char* names_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  Relocations calls_{};
  Relocations others_{};
};

}  // namespace

bool KeepSignalHandlersOf(const std::string& path, bool* is_loaded) {
  void* const handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  link_map* map = nullptr;
  const bool is_there = handle != nullptr && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0;
  const bool is_called =
      is_there && LoadedLibrary(*map).Redirect("signal", reinterpret_cast<void*>(SignalOfOthers));
  if (handle != nullptr) dlclose(handle);
  if (is_loaded != nullptr) *is_loaded = is_there;
  return is_called;
}

PyObject* KeepSignalHandlers(PyObject*, PyObject* path) {
  std::string file;
  if (!ReadPath(path, &file)) return nullptr;
  bool is_loaded = false;
  const bool is_called = KeepSignalHandlersOf(file, &is_loaded);
  if (is_loaded) return PyBool_FromLong(is_called ? 1 : 0);
  PyErr_Format(PyExc_ValueError, "keep_signal_handlers: %s is not loaded", file.c_str());
  return nullptr;
}
