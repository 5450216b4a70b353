// SHA-256, which every key and every entry of the cache rests on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "../../version.h"

CULAUNCH_NAMESPACE_BEGIN

namespace jit {

// FIPS 180-4. Feed it bytes, then ask for the digest once.
class Sha256 {
 public:
  Sha256& Add(std::string_view bytes) {
    length_ += bytes.size();
    while (!bytes.empty()) {
      const size_t taken = bytes.size() < kBlock - filled_ ? bytes.size() : kBlock - filled_;
      if (filled_ == 0 && taken == kBlock) {
        Mix(reinterpret_cast<const unsigned char*>(bytes.data()));
      } else {
        std::memcpy(block_ + filled_, bytes.data(), taken);
        filled_ += taken;
        if (filled_ == kBlock) {
          Mix(block_);
          filled_ = 0;
        }
      }
      bytes.remove_prefix(taken);
    }
    return *this;
  }

  // The 32 bytes of the digest.
  std::string Bytes() {
    const uint64_t bits = length_ * 8;
    Add(std::string_view("\x80", 1));
    while (filled_ != kBlock - 8) Add(std::string_view("\0", 1));
    char size[8];
    for (unsigned i = 0; i < 8; ++i) size[i] = static_cast<char>(bits >> (56 - 8 * i) & 255);
    Add(std::string_view(size, sizeof size));
    std::string digest;
    for (const uint32_t word : state_) {
      for (unsigned shift = 32; shift != 0; shift -= 8) {
        digest += static_cast<char>(word >> (shift - 8) & 255);
      }
    }
    return digest;
  }

  // The digest as 64 hexadecimal digits.
  std::string Hex() {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (const char c : Bytes()) {
      text += kDigits[static_cast<unsigned char>(c) >> 4];
      text += kDigits[static_cast<unsigned char>(c) & 15];
    }
    return text;
  }

 private:
  static constexpr size_t kBlock = 64;

  static uint32_t Rotated(uint32_t word, unsigned by) { return word >> by | word << (32 - by); }

  void Mix(const unsigned char* block) {
    static constexpr uint32_t kRounds[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};
    uint32_t words[64];
    for (unsigned i = 0; i < 16; ++i) {
      words[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
                 uint32_t{block[4 * i + 2]} << 8 | uint32_t{block[4 * i + 3]};
    }
    for (unsigned i = 16; i < 64; ++i) {
      const uint32_t a = words[i - 15];
      const uint32_t b = words[i - 2];
      words[i] = words[i - 16] + (Rotated(a, 7) ^ Rotated(a, 18) ^ a >> 3) + words[i - 7] +
                 (Rotated(b, 17) ^ Rotated(b, 19) ^ b >> 10);
    }
    uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3];
    uint32_t e = state_[4], f = state_[5], g = state_[6], h = state_[7];
    for (unsigned i = 0; i < 64; ++i) {
      const uint32_t first = h + (Rotated(e, 6) ^ Rotated(e, 11) ^ Rotated(e, 25)) +
                             ((e & f) ^ (~e & g)) + kRounds[i] + words[i];
      const uint32_t second =
          (Rotated(a, 2) ^ Rotated(a, 13) ^ Rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + first;
      d = c;
      c = b;
      b = a;
      a = first + second;
    }
    const uint32_t mixed[8] = {a, b, c, d, e, f, g, h};
    for (unsigned i = 0; i < 8; ++i) state_[i] += mixed[i];
  }

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint64_t length_ = 0;
  unsigned char block_[kBlock];
  size_t filled_ = 0;
};

inline std::string HexDigest(std::string_view bytes) { return Sha256().Add(bytes).Hex(); }

}  // namespace jit

CULAUNCH_NAMESPACE_END
