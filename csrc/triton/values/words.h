// A short list of 64-bit words: a call's key, and the values that the call passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "python/small_buffer.h"

namespace triton {

// On the stack for usual calls. Adding a word invalidates the addresses of words.
class Words {
 public:
  Words() = default;
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  void Add(uint64_t word) {
    if (size_ == capacity_) Grow();
    words_[size_++] = word;
  }

  void Clear() { size_ = 0; }
  size_t size() const { return size_; }
  uint64_t* data() { return words_.data(); }
  const uint64_t* data() const { return words_.data(); }
  uint64_t operator[](size_t i) const { return words_[i]; }

  uint64_t Hash() const {
    uint64_t hash = 0x9e3779b97f4a7c15ull * (size_ + 1);
    for (size_t i = 0; i < size_; ++i) {
      hash = ((hash << 5 | hash >> 59) ^ words_[i]) * 0xff51afd7ed558ccdull;
    }
    return hash ^ hash >> 32;
  }

 private:
  static constexpr size_t kInline = 128;

  void Grow() {
    words_.Grow(capacity_ * 2, size_);
    capacity_ *= 2;
  }

  SmallBuffer<uint64_t, kInline> words_;
  size_t size_ = 0;
  size_t capacity_ = kInline;
};

// Maps words to a value, by open addressing. Values are never removed one by one.
template <class Value>
class WordTable {
 public:
  Value* Find(const Words& key, uint64_t hash) {
    if (entries_.empty()) return nullptr;
    const size_t mask = entries_.size() - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
      Entry& entry = entries_[i];
      if (entry.words == nullptr) return nullptr;
      if (entry.hash == hash && entry.size == key.size() &&
          std::memcmp(entry.words.get(), key.data(), key.size() * sizeof(uint64_t)) == 0) {
        return &entry.value;
      }
    }
  }

  // Add it if it is missing.
  void Add(const Words& key, uint64_t hash, Value value) {
    if (entries_.empty() || (count_ + 1) * 2 > entries_.size()) Rehash();
    Entry entry;
    entry.hash = hash;
    entry.size = key.size();
    entry.words = std::make_unique<uint64_t[]>(key.size() + 1);
    std::memcpy(entry.words.get(), key.data(), key.size() * sizeof(uint64_t));
    entry.value = std::move(value);
    Place(std::move(entry));
    ++count_;
  }

  size_t count() const { return count_; }

  template <class Visit>
  void ForEach(Visit&& visit) {
    for (Entry& entry : entries_) {
      if (entry.words != nullptr) visit(entry.value);
    }
  }

 private:
  struct Entry {
    uint64_t hash = 0;
    size_t size = 0;
    std::unique_ptr<uint64_t[]> words;
    Value value{};
  };

  void Place(Entry entry) {
    const size_t mask = entries_.size() - 1;
    size_t i = entry.hash & mask;
    while (entries_[i].words != nullptr) i = (i + 1) & mask;
    entries_[i] = std::move(entry);
  }

  void Rehash() {
    std::vector<Entry> old = std::move(entries_);
    entries_ = std::vector<Entry>(old.empty() ? 16 : old.size() * 2);
    for (Entry& entry : old) {
      if (entry.words != nullptr) Place(std::move(entry));
    }
  }

  std::vector<Entry> entries_;
  size_t count_ = 0;
};

}  // namespace triton
