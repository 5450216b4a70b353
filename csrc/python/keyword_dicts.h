// Reading the entries of a dict of keywords without a call into Python for each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "python/python.h"

namespace keyword_dicts {

struct Entry {
  PyObject* name;
  PyObject* value;
};

// What a dict is made of, from CPython 3.11 on. The structures are no part of the stable ABI.
struct Keys {
  Py_ssize_t users;
  uint8_t log2_size;
  uint8_t log2_index_bytes;
  uint8_t kind;
  uint32_t version;
  Py_ssize_t usable;
  Py_ssize_t count;  // of entries, those that were deleted too
};
struct Dict {
  PyObject head;
  Py_ssize_t used;
  uint64_t version;
  const Keys* keys;
  const void* values;  // of an object's attributes; null: the entries have them
};
constexpr uint8_t kNamesAlone = 1;  // Keys::kind, where all keys are str

}  // namespace keyword_dicts

// Whether the trial, made when the module is imported, read dicts just as the C API does.
extern bool g_keyword_dicts_are_known;

// Make the trial.
void TryKeywordDicts();
// As if it had failed, or as it turned out: the switch of _core.use_shortcut.
void UseKeywordDicts(bool use);

// The entries of a dict that has `count` of them, in order: borrowed. Null where it has another
// number of them, or may only be asked.
inline const keyword_dicts::Entry* EntriesOf(PyObject* dict, size_t count) {
  using namespace keyword_dicts;
  if (CULAUNCH_UNLIKELY(!g_keyword_dicts_are_known)) return nullptr;
  const auto& read = *reinterpret_cast<const Dict*>(dict);
  const Keys& keys = *read.keys;
  const auto size = static_cast<Py_ssize_t>(count);
  const bool is_plain =
      (static_cast<int>(read.used == size) & static_cast<int>(keys.count == size) &
       static_cast<int>(keys.kind == kNamesAlone) & static_cast<int>(read.values == nullptr)) != 0;
  if (CULAUNCH_UNLIKELY(!is_plain)) return nullptr;
  const char* indices = reinterpret_cast<const char*>(&keys + 1);
  return reinterpret_cast<const Entry*>(indices + (size_t{1} << keys.log2_index_bytes));
}
