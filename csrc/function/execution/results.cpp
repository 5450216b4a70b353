// The objects that a program passes to Python: arguments of functions that it calls, and its
// result.
#include "arguments/device_array/device_array.h"
#include "function/execution/execution.h"
#include "function/program/problems.h"
#include "python/upcalls.h"

namespace function {

bool Execution::Call(const Effect& effect) {
  const CallRecord& call = *effect.call;
  const size_t count = call.arguments.size();
  std::vector<Ref> held;
  std::vector<PyObject*> objects;
  objects.reserve(count + 1);
  for (const auto& [kind, index] : call.arguments) {
    Ref made;
    objects.push_back(kind == Value::kArray ? ObjectOf(index) : Simple(kind, index, &made));
    if (objects.back() == nullptr) return false;
    if (made) held.push_back(std::move(made));
  }
  Ref names;
  if (!call.outputs.empty()) {
    static PyObject* const out = PyUnicode_InternFromString("out");
    Ref outputs;
    if (call.outputs.size() == 1) {
      outputs = Ref::Borrow(ObjectOf(call.outputs[0]));
    } else {
      outputs = Ref(PyTuple_New(static_cast<Py_ssize_t>(call.outputs.size())));
      for (size_t i = 0; outputs && i < call.outputs.size(); ++i) {
        PyObject* object = ObjectOf(call.outputs[i]);
        if (object == nullptr) return false;
        PyTuple_SetItem(outputs.get(), static_cast<Py_ssize_t>(i), Ref::Borrow(object).release());
      }
    }
    names = Ref(PyTuple_New(1));
    if (!outputs || !names) return false;
    PyTuple_SetItem(names.get(), 0, Ref::Borrow(out).release());
    objects.push_back(outputs.get());
    held.push_back(std::move(outputs));
  }
  const Ref done(PyObject_Vectorcall(call.callable, objects.data(), count, names.get()));
  if (done) return true;
  PrefixError(Text(effect));
  return false;
}

// JAX has its own stream, so it gets its array only after the array has been computed.
Ref Execution::Finish(PyObject* object) {
  const CallPlace& place = call_.place_;
  if (place.first == nullptr || !IsDeviceArray(object) || IsDeviceArray(place.first)) {
    return Ref::Borrow(object);
  }
  return CallUp(Upcall::kFinishAllocation, "OOK", place.first, object,
                reinterpret_cast<unsigned long long>(place.stream));
}

// A value that is not an array, borrowed; `made` keeps it if it is new.
PyObject* Execution::Simple(Value kind, int32_t index, Ref* made) const {
  switch (kind) {
    case Value::kInt:
      *made = Ref(PyLong_FromLongLong(Int(index)));
      return made->get();
    case Value::kFloat:
      *made = Ref(PyFloat_FromDouble(AsFloat(Int(index))));
      return made->get();
    case Value::kBool:
      return Int(index) != 0 ? Py_True : Py_False;
    case Value::kArgument:
      return call_.args_[index];
    case Value::kConstant:
      return PyTuple_GetItem(program_.constants, index);
    default:
      return Py_None;
  }
}

Ref Execution::Items(const Word** word, bool is_list) {
  const auto count = static_cast<Py_ssize_t>(*(*word)++);
  Ref items(is_list ? PyList_New(count) : PyTuple_New(count));
  for (Py_ssize_t i = 0; items && i < count; ++i) {
    PyObject* item = Result(word).release();
    if (item == nullptr) return Ref();
    if (is_list) {
      PyList_SetItem(items.get(), i, item);
    } else {
      PyTuple_SetItem(items.get(), i, item);
    }
  }
  return items;
}

Ref Execution::Result(const Word** word) {
  const auto kind = static_cast<Value>(*(*word)++);
  switch (kind) {
    case Value::kNone:
      return Ref::Borrow(Py_None);
    case Value::kArray: {
      PyObject* object = ObjectOf(static_cast<int32_t>(*(*word)++));
      return object != nullptr ? Finish(object) : Ref();
    }
    case Value::kElement: {
      PyObject* sequence = call_.args_[*(*word)++];
      return Ref(PySequence_GetItem(sequence, static_cast<Py_ssize_t>(*(*word)++)));
    }
    case Value::kTuple:
    case Value::kList:
      return Items(word, kind == Value::kList);
    case Value::kDict: {
      const Word count = *(*word)++;
      Ref dict(PyDict_New());
      for (Word i = 0; dict && i < count; ++i) {
        PyObject* key = program_.Text(static_cast<int32_t>(*(*word)++));
        const Ref item = Result(word);
        if (!item || PyDict_SetItem(dict.get(), key, item.get()) < 0) return Ref();
      }
      return dict;
    }
    case Value::kCalled: {
      PyObject* callable = PyTuple_GetItem(program_.constants, *(*word)++);
      const Ref items = Items(word, false);
      return items ? Ref(PyObject_Call(callable, items.get(), nullptr)) : Ref();
    }
    default: {
      Ref made;
      PyObject* object = Simple(kind, static_cast<int32_t>(*(*word)++), &made);
      return made ? std::move(made) : Ref::Borrow(object);
    }
  }
}

}  // namespace function
