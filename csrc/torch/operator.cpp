#include "torch/operator.h"

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "driver/errors.h"
#include "python/small_buffer.h"
#include "torch/interface.h"

namespace torch_operators {

namespace {

// torch does not tell an implementation which operator was called, so each operator has its own
// function. Operators past this number go through Python.
constexpr size_t kMostOperators = 1024;
// The stable interface of torch 2.10, in its own version format.
constexpr uint64_t kVersion = uint64_t{2} << 56 | uint64_t{10} << 48;

struct Operator {
  std::string name;
  std::string arguments;
  std::string results;
  Ref keyword_names;  // null if there are none
  size_t positional = 0;
  std::atomic<PyObject*> callable{nullptr};
};

std::array<std::atomic<Operator*>, kMostOperators> g_operators;
size_t g_count = 0;
std::mutex g_mutex;

template <class T>
T As(Value value) {
  T result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

template <class T>
Value From(T value) {
  Value result = 0;
  std::memcpy(&result, &value, sizeof value);
  return result;
}

// ---- arguments: each is owned, and freed here in every case

Ref TakeTensor(void* handle) {
  Ref object(g_interface->wrap(handle));
  g_interface->delete_tensor(handle);
  return object;
}

Ref TakeList(void* list) {
  size_t size = 0;
  g_interface->list_size(list, &size);
  Ref items(PyList_New(static_cast<Py_ssize_t>(size)));
  for (size_t i = 0; i < size; ++i) {
    Value item = 0;
    if (g_interface->list_item(list, i, &item) != 0) continue;
    Ref tensor = TakeTensor(As<void*>(item));
    if (!tensor) items = Ref();
    if (items) PyList_SetItem(items.get(), static_cast<Py_ssize_t>(i), tensor.release());
  }
  g_interface->delete_list(list);
  return items;
}

Ref TakeString(void* string) {
  const char* data = "";
  size_t size = 0;
  g_interface->string_data(string, &data);
  g_interface->string_size(string, &size);
  Ref text(PyUnicode_FromStringAndSize(data, static_cast<Py_ssize_t>(size)));
  g_interface->delete_string(string);
  return text;
}

Ref DtypeOf(int32_t number) {
  const Ref key(PyLong_FromLong(number));
  PyObject* dtype = key ? PyDict_GetItemWithError(g_interface->dtypes, key.get()) : nullptr;
  if (dtype == nullptr && PyErr_Occurred() == nullptr) {
    PyErr_Format(PyExc_TypeError, "culaunch has no element type for torch's scalar type %d",
                 number);
  }
  return dtype != nullptr ? Ref::Borrow(dtype) : Ref();
}

Ref Take(char code, Value value) {
  if (code >= 'a') {  // optional: null, or a pointer to the value
    auto* inner = As<Value*>(value);
    if (inner == nullptr) return Ref::Borrow(Py_None);
    const Value held = *inner;
    delete inner;
    return Take(static_cast<char>(code - 'a' + 'A'), held);
  }
  switch (code) {
    case 'T':
      return TakeTensor(As<void*>(value));
    case 'L':
      return TakeList(As<void*>(value));
    case 'I':
      return Ref(PyLong_FromLongLong(As<int64_t>(value)));
    case 'F':
      return Ref(PyFloat_FromDouble(As<double>(value)));
    case 'B':
      return Ref::Borrow(As<bool>(value) ? Py_True : Py_False);
    case 'S':
      return TakeString(As<void*>(value));
    default:
      return DtypeOf(As<int32_t>(value));
  }
}

// ---- results

bool Give(const Operator& op, char code, PyObject* object, Value* value) {
  if (code == 'T') {
    const auto* type = reinterpret_cast<PyTypeObject*>(g_interface->tensor_type);
    if (Py_TYPE(object) != type &&
        PyType_IsSubtype(Py_TYPE(object), const_cast<PyTypeObject*>(type)) == 0) {
      PyErr_Format(PyExc_TypeError,
                   "%s: the function returned %R, but its operator returns tensors",
                   op.name.c_str(), Py_TYPE(object));
      return false;
    }
    void* handle = nullptr;
    if (g_interface->new_tensor(reinterpret_cast<const char*>(object) + g_interface->tensor,
                                &handle) != 0) {
      PyErr_Format(PyExc_RuntimeError, "%s: torch rejected the result", op.name.c_str());
      return false;
    }
    *value = From(handle);
  } else if (code == 'F') {
    *value = From(PyFloat_AsDouble(object));
  } else if (code == 'B') {
    *value = From(object == Py_True);
  } else {
    *value = From(static_cast<int64_t>(PyLong_AsLongLong(object)));
  }
  return PyErr_Occurred() == nullptr;
}

bool GiveAll(const Operator& op, PyObject* result, Value* stack) {
  const std::string& codes = op.results;
  if (codes.empty()) return true;
  if (!PyTuple_Check(result) && !PyList_Check(result)) {
    if (codes.size() == 1) return Give(op, codes[0], result, stack);
  } else {
    const Py_ssize_t count = PySequence_Size(result);
    size_t given = 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
      const Ref item(PySequence_GetItem(result, i));
      if (!item) return false;
      if (item.get() == Py_None) continue;
      if (given < codes.size() && !Give(op, codes[given], item.get(), stack + given)) return false;
      ++given;
    }
    if (given == codes.size()) return true;
  }
  PyErr_Format(PyExc_TypeError, "%s: the function returned %R, but its operator returns %zu values",
               op.name.c_str(), Py_TYPE(result), codes.size());
  return false;
}

// False with a Python error set.
bool Call(const Operator& op, Value* stack) {
  const size_t count = op.arguments.size();
  SmallBuffer<Ref, 16> owned(count);
  SmallBuffer<PyObject*, 17> arguments(count + 1);
  bool is_complete = true;
  for (size_t i = 0; i < count; ++i) {
    owned[i] = Take(op.arguments[i], stack[i]);
    arguments[i + 1] = owned[i].get();
    is_complete = is_complete && owned[i];
  }
  if (!is_complete) return false;
  const Ref callable = Ref::Borrow(op.callable.load(std::memory_order_acquire));
  const Ref result(PyObject_Vectorcall(callable.get(), arguments.data() + 1,
                                       op.positional | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                       op.keyword_names.get()));
  return result && GiveAll(op, result.get(), stack);
}

// Throw the Python error as torch does, to pass it to the operator's caller unchanged.
[[noreturn]] void Throw(const Operator& op, bool is_pythons_thread) {
  if (is_pythons_thread) {
    const Ref numbers(Py_BuildValue("(i)", -1));
    // A number that reads as -1 while an error is set is an error, for torch as for Python.
    if (numbers) g_interface->unpack_longs(numbers.get());
  }
  // Save the error: the thread's state is freed, and the error with it.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const Ref types(type), values(value), traces(trace);
  const Ref text(value != nullptr ? PyObject_Str(value) : nullptr);
  const char* message = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  throw std::runtime_error(message != nullptr ? message : op.name + " failed");
}

void Dispatch(size_t index, Value* stack) {
  const bool is_pythons_thread = PyGILState_GetThisThreadState() != nullptr;
  const HoldGil gil;
  const Operator& op = *g_operators[index].load(std::memory_order_acquire);
  if (CULAUNCH_UNLIKELY(!Call(op, stack))) Throw(op, is_pythons_thread);
}

template <size_t kIndex>
void Entry(Value* stack, uint64_t, uint64_t) {
  Dispatch(kIndex, stack);
}

template <size_t... kIndices>
constexpr std::array<Kernel, sizeof...(kIndices)> Entries(std::index_sequence<kIndices...>) {
  return {Entry<kIndices>...};
}

constexpr auto kEntries = Entries(std::make_index_sequence<kMostOperators>());

bool HasOnly(const char* codes, const char* known) {
  return codes[std::strspn(codes, known)] == '\0';
}

bool Register(const char* space, const std::string& name, PyObject* keys, Kernel kernel) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(keys); ++i) {
    const char* key = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(keys, i), nullptr);
    if (key == nullptr) return false;
    // torch's registration of implementations, which lives as long as the process.
    void* library = nullptr;
    if (g_interface->init_impl(space, key, "culaunch", 0, &library) != 0 ||
        g_interface->impl(library, name.c_str(), kernel, kVersion) != 0) {
      PyErr_Format(PyExc_RuntimeError, "torch rejected an implementation of %s::%s for %s", space,
                   name.c_str(), key);
      return false;
    }
  }
  return true;
}

}  // namespace

PyObject* BindOperator(PyObject*, PyObject* args) {
  PyObject *callable, *keyword_names, *keys;
  const char *space, *name, *arguments, *results;
  if (!PyArg_ParseTuple(args, "OsssO!sO!:bind_operator", &callable, &space, &name, &arguments,
                        &PyTuple_Type, &keyword_names, &results, &PyTuple_Type, &keys)) {
    return nullptr;
  }
  const auto keywords = static_cast<size_t>(PyTuple_Size(keyword_names));
  if (g_interface == nullptr || !HasOnly(arguments, "TLIFBSDtlifbsd") ||
      !HasOnly(results, "TIFB") || keywords > std::strlen(arguments)) {
    PyErr_SetString(PyExc_ValueError, "bind_operator: torch is not open, or a letter is unknown");
    return nullptr;
  }
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    auto op = std::make_unique<Operator>();
    op->name = std::string(space) + "::" + name;
    op->arguments = arguments;
    op->results = results;
    op->positional = op->arguments.size() - keywords;
    if (keywords != 0) op->keyword_names = Ref::Borrow(keyword_names);
    op->callable.store(Ref::Borrow(callable).release(), std::memory_order_release);
    size_t index = 0;
    {
      const std::lock_guard<std::mutex> lock(g_mutex);
      if (g_count == kMostOperators) Py_RETURN_NONE;
      index = g_count++;
    }
    g_operators[index].store(op.release(), std::memory_order_release);
    if (!Register(space, name, keys, kEntries[index])) return nullptr;
    return PyLong_FromSize_t(index);
  });
}

PyObject* RebindOperator(PyObject*, PyObject* args) {
  Py_ssize_t number;
  PyObject* callable;
  if (!PyArg_ParseTuple(args, "nO:rebind_operator", &number, &callable)) return nullptr;
  Operator* op = number >= 0 && static_cast<size_t>(number) < kMostOperators
                     ? g_operators[static_cast<size_t>(number)].load(std::memory_order_acquire)
                     : nullptr;
  if (op == nullptr) {
    PyErr_Format(PyExc_ValueError, "rebind_operator: there is no operator %zd", number);
    return nullptr;
  }
  // Another call may still use the previous callable, so it is kept.
  op->callable.store(Ref::Borrow(callable).release(), std::memory_order_release);
  Py_RETURN_NONE;
}

}  // namespace torch_operators
