#include "xla/target.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "python/upcalls.h"

namespace xla_calls {

namespace {

std::mutex g_mutex;

// Kept for the life of the process, because XLA's executables may live that long.
std::unordered_map<std::string, std::unique_ptr<Target>>& Targets() {
  static auto* targets = new std::unordered_map<std::string, std::unique_ptr<Target>>();
  return *targets;
}

thread_local const Target* t_last = nullptr;

bool ReadNumbers(PyObject* tuple, std::vector<long>* numbers) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
    const long number = PyLong_AsLong(PyTuple_GetItem(tuple, i));
    if (number == -1 && PyErr_Occurred() != nullptr) return false;
    numbers->push_back(number);
  }
  return true;
}

std::unique_ptr<Target> Read(const std::string& text) {
  const Ref found = CallUp(Upcall::kResolveXlaCall, "s", text.c_str());
  if (!found) return nullptr;
  PyObject *callable, *values, *names, *arrays, *writes;
  if (!PyArg_ParseTuple(found.get(), "OO!O!O!O!", &callable, &PyTuple_Type, &values, &PyTuple_Type,
                        &names, &PyTuple_Type, &arrays, &PyTuple_Type, &writes)) {
    return nullptr;
  }
  auto target = std::make_unique<Target>();
  std::vector<long> written;
  if (!ReadNumbers(arrays, &target->arrays) || !ReadNumbers(writes, &written)) return nullptr;
  for (const long count : target->arrays) {
    target->array_count += static_cast<size_t>(count == 0 ? 1 : count < 0 ? -1 - count : count);
  }
  for (const long one : written) target->writes.push_back(static_cast<size_t>(one));
  target->text = text;
  target->callable = Ref::Borrow(callable);
  target->values = Ref::Borrow(values);
  if (PyTuple_Size(names) != 0) target->keyword_names = Ref::Borrow(names);
  return target;
}

}  // namespace

const Target* FindTarget(const char* text, size_t size) {
  if (t_last != nullptr && t_last->text.size() == size &&
      std::memcmp(t_last->text.data(), text, size) == 0) {
    return t_last;
  }
  const std::string key(text, size);
  {
    const std::lock_guard<std::mutex> lock(g_mutex);
    const auto found = Targets().find(key);
    if (found != Targets().end()) return t_last = found->second.get();
  }
  std::unique_ptr<Target> target = Read(key);
  if (target == nullptr) return nullptr;
  const std::lock_guard<std::mutex> lock(g_mutex);
  // If another thread was first, use its target.
  return t_last = Targets().emplace(key, std::move(target)).first->second.get();
}

}  // namespace xla_calls
