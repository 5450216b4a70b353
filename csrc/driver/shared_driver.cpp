#include "driver/shared_driver.h"

#include <cstdio>
#include <string>
#include <vector>

std::string PublishDriver(const culaunch::Driver& driver) {
  static const culaunch::PublishedDriver* const offer = [&driver] {
    auto* types = new std::vector<int>(driver.device_types());
    types->push_back(-1);
    return new culaunch::PublishedDriver{culaunch::PublishedDriver::kVersion, driver.name().c_str(),
                                         types->data(), driver.note_array, driver};
  }();
  char text[64];
  // The process is part of it: a child without this memory must not take the address.
  std::snprintf(text, sizeof text, "%ld:%llx", culaunch::detail::ProcessId(),
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(offer)));
  return text;
}
