// Like tests/compile/racer.py: ask one cache for many keys at once, and record the compilations.
#include <culaunch/jit/cache.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

int main(int, char** words) {
  culaunch::CacheOptions options;
  options.path = words[1];
  options.warn = [](const std::string& message) {
    std::fprintf(stderr, "%s\n", message.c_str());
    std::exit(2);
  };
  culaunch::Cache cache(options);
  std::vector<int> order(static_cast<size_t>(std::atoi(words[4])));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(getpid())));
  while (!culaunch::jit::IsThere(words[3])) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const int number : order) {
    char key[65];
    std::snprintf(key, sizeof key, "%064x", static_cast<unsigned>(number));
    culaunch::Image expected;
    expected.data = ".version 8.0\n// " + std::to_string(number) + "\n";
    expected.names = {{"k", std::to_string(number)}};
    const culaunch::Image found = cache.GetOrMake(key, [&] {
      const std::string line = std::to_string(number) + "\n";
      const culaunch::jit::Descriptor log(
          open(words[2], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
      if (write(log.get(), line.data(), line.size()) < 0) std::exit(3);
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      return expected;
    });
    if (found.data != expected.data || found.names != expected.names) return 1;
  }
  return 0;
}
