#include "published.h"

#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "python.h"

namespace {

culaunch::DriverTable g_table;
std::atomic<bool> g_closed{false};

// The function of g_table behind `member`, for as long as Python lives.
template <auto member, class Function>
struct Gate;

template <auto member, class... Arguments>
struct Gate<member, CUresult (*)(Arguments...)> {
  static CUresult Call(Arguments... arguments) {
    if (g_closed.load(std::memory_order_acquire)) return CUDA_ERROR_DEINITIALIZED;
    return (g_table.*member)(arguments...);
  }
};

culaunch::DriverTable Gated() {
  culaunch::DriverTable table;
#define CULAUNCH_GATE(function, version, required)                                        \
  if (g_table.function != nullptr) {                                                      \
    table.function = Gate<&culaunch::DriverTable::function, decltype(&::function)>::Call; \
  }
  CULAUNCH_DRIVER_FUNCTIONS(CULAUNCH_GATE)
#undef CULAUNCH_GATE
  return table;
}

void (*g_note_array)(const void* begin, size_t bytes) = nullptr;

void NoteArray(const void* begin, size_t bytes) {
  if (!g_closed.load(std::memory_order_acquire)) g_note_array(begin, bytes);
}

}  // namespace

std::string PublishDriver(const culaunch::Driver& driver) {
  static const culaunch::PublishedDriver* const offer = [&driver] {
    g_table = driver;
    g_note_array = driver.note_array;
    Py_AtExit([] { g_closed.store(true, std::memory_order_release); });
    auto* types = new std::vector<int>(driver.device_types());
    types->push_back(-1);
    return new culaunch::PublishedDriver{culaunch::PublishedDriver::kVersion, driver.name().c_str(),
                                         types->data(),
                                         g_note_array != nullptr ? NoteArray : nullptr, Gated()};
  }();
  char text[64];
  // The process is part of it: a child without this memory must not take the address.
  std::snprintf(text, sizeof text, "%ld:%llx", culaunch::detail::ProcessId(),
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(offer)));
  return text;
}
