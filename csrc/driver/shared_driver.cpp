#include "driver/shared_driver.h"

#include <culaunch/shared_library.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

// Offers are permanent, because other libraries hold their addresses.
std::string PublishDriver(const culaunch::Driver& driver) {
  static auto* const offers = new std::map<const culaunch::Driver*, culaunch::PublishedDriver*>();
  culaunch::PublishedDriver*& offer = (*offers)[&driver];
  if (offer == nullptr) {
    auto* types = new std::vector<int>(driver.device_types());
    types->push_back(-1);
    offer =
        new culaunch::PublishedDriver{culaunch::PublishedDriver::kVersion, driver.name().c_str(),
                                      types->data(), driver.note_array, driver};
  }
  char text[64];
  // The text contains the process id: a child without this memory must not use the address.
  std::snprintf(text, sizeof text, "%ld:%llx", culaunch::detail::ProcessId(),
                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(offer)));
  return text;
}
