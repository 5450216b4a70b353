// Which architectures to compile for: names, the device's in use.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "../../driver.h"
#include "../../error.h"
#include "../../guard.h"
#include "../../text.h"
#include "../../version.h"
#include "cuda_places.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// "sm_90a", "compute_80": machine code and PTX.
struct Architecture {
  bool is_virtual = false;
  int number = 0;
  std::string suffix;

  explicit Architecture(const std::string& name) {
    is_virtual = name.compare(0, 8, "compute_") == 0;
    size_t at = is_virtual ? 8 : 3;
    bool is_good = is_virtual || name.compare(0, 3, "sm_") == 0;
    const size_t start = at;
    while (at < name.size() && name[at] >= '0' && name[at] <= '9') ++at;
    is_good = is_good && (at - start == 2 || at - start == 3) && name[start] != '0';
    if (at < name.size() && (name[at] == 'a' || name[at] == 'f')) suffix = name.substr(at++);
    if (!is_good || at != name.size()) {
      throw Error("arch \"" + name + "\" is not an architecture; name one such as \"sm_90\", " +
                  "\"sm_90a\" or \"compute_80\", or \"native\" for the device in use");
    }
    number = std::atoi(name.c_str() + start);
    if (suffix.size() > 1) suffix.resize(1);
  }

  std::string Name() const {
    return (is_virtual ? "compute_" : "sm_") + detail::ToText(number) + suffix;
  }
  bool operator<(const Architecture& other) const {
    return std::tie(is_virtual, number, suffix) <
           std::tie(other.is_virtual, other.number, other.suffix);
  }
};

inline bool IsEmulator(const Driver& driver) { return driver.name() == "emulator"; }

// The architectures that a driver can load: machine code for the current device, or else the first
// device, or only PTX for the emulated driver. Empty without a device.
inline std::vector<std::string> ArchsOf(Driver& driver, const std::string& suffix = "") {
  if (IsEmulator(driver)) {
    const std::string chosen = EnvironmentVariable("CULAUNCH_EMULATOR_ARCH");
    Architecture emulated(chosen.empty() ? "sm_80" : chosen);
    emulated.is_virtual = true;
    return {emulated.Name()};
  }
  if (driver.device_count() == 0) return {};
  const int current = std::max(CurrentDevice(driver), 0);
  const int major = driver.Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, current);
  const int minor = driver.Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, current);
  return {"sm_" + detail::ToText(major) + detail::ToText(minor) + suffix};
}

// The architectures of one compile, without duplicates and in a fixed order.
//
// asked: "sm_90a", "compute_80", "native", "native_a" or "native_f". If it is empty, the device's,
// or without a driver PTX that most devices accept. loadable: whether the emulated driver must be
// able to load the image.
inline std::vector<std::string> ResolveArchs(const std::vector<std::string>& asked, bool loadable) {
  std::vector<std::string> named = asked;
  Driver* driver = nullptr;
  const auto find_driver = [&] {
    try {
      driver = &Driver::Get();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kNoDriver) throw;
    }
    return driver != nullptr;
  };
  if (named.empty()) {
    if (find_driver()) named = ArchsOf(*driver);
    if (named.empty()) named = {"compute_80"};
  }
  std::vector<Architecture> found;
  for (const std::string& name : named) {
    if (name.compare(0, 6, "native") != 0) {
      found.emplace_back(name);
      continue;
    }
    if (name != "native" && name != "native_a" && name != "native_f") Architecture{name};
    const std::string suffix = name.size() > 7 ? name.substr(7) : "";
    const std::vector<std::string> own =
        find_driver() ? ArchsOf(*driver, suffix) : std::vector<std::string>();
    if (own.empty()) {
      throw Error("there is no GPU to take arch from; name one, such as \"sm_90\"");
    }
    for (const std::string& one : own) found.emplace_back(one);
  }
  // The emulator executes only PTX. (If Python selects the emulator, it adds the same.)
  if (loadable && EnvironmentVariable("CULAUNCH_DRIVER") == "emulator") {
    for (size_t i = 0, count = found.size(); i < count; ++i) {
      found.push_back(found[i]);
      found.back().is_virtual = true;
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (const Architecture& one : found) {
    if (names.empty() || names.back() != one.Name()) names.push_back(one.Name());
  }
  return names;
}

}  // namespace jit

CULAUNCH_NAMESPACE_END
