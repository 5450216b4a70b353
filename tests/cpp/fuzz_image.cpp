// CheckImage and ReadMetadata over damaged images, each in memory of exactly its size:
// AddressSanitizer sees a read past the end. Usage: fuzz_image FILE... ; prints how many names an
// image has, and how many damaged ones were refused.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "culaunch/culaunch.h"
#include "culaunch/image_check.h"
#include "culaunch/image_metadata.h"

static bool IsRefused(const std::vector<char>& bytes) {
  const std::vector<char> exact(bytes.begin(), bytes.end());
  culaunch::ImageFormat format{};
  culaunch::ImageMetadata found;
  return !culaunch::CheckImage(exact.data(), exact.size(), &format) ||
         !culaunch::ReadMetadata(exact.data(), exact.size(), format, &found);
}

int main(int count, char** files) {
  for (int i = 1; i < count; ++i) {
    std::ifstream file(files[i], std::ios::binary);
    const std::vector<char> good{std::istreambuf_iterator<char>(file), {}};
    if (good.empty() || IsRefused(good)) return 1;
    int refused_short = 0;
    int refused_changed = 0;
    std::mt19937 random(1);
    const int rounds = good.size() < 50000 ? 2000 : 20;
    for (int round = 0; round < rounds; ++round) {
      std::vector<char> bad(good.begin(), good.begin() + static_cast<long>(random() % good.size()));
      refused_short += IsRefused(bad);
      bad = good;
      for (unsigned change = 0; change <= round % 4u; ++change) {
        // Half of the changes in the first header, where the offsets start, or at the end.
        size_t where = random() % (random() % 2 != 0 ? 64 : bad.size());
        if (round % 8 == 0) where = bad.size() - 1 - where % 100;
        bad[where] = static_cast<char>(random());
      }
      refused_changed += IsRefused(bad);
    }
    culaunch::ImageFormat format{};
    culaunch::ImageMetadata found;
    culaunch::CheckImage(good.data(), good.size(), &format).OrThrow();
    culaunch::ReadMetadata(good.data(), good.size(), format, &found).OrThrow();
    std::printf("names %zu short %d changed %d\n", found.names.size(), refused_short,
                refused_changed);
  }
}
