#include "driver/driver_in_use.h"

#include <atomic>
#include <memory>
#include <vector>

#include "driver/driver_object.h"
#include "python/upcalls.h"

namespace {

// The environment selects the driver, and any code may change it at any time, so each use compares
// it. Objects held here keep their addresses, so comparing addresses is enough.
struct Condition {
  Ref dict;
  Ref key;
  Ref value;  // null: the dict has no such key
};

struct Choice {
  Ref driver;
  std::vector<Condition> conditions;
};

std::atomic<Choice*> g_choice{nullptr};

bool Holds(const Choice& choice) {
  for (const Condition& one : choice.conditions) {
    if (PyDict_GetItemWithError(one.dict.get(), one.key.get()) != one.value.get()) return false;
  }
  return true;
}

// Borrowed from the choice, or a new reference that `asked` holds. Null with a Python error set.
PyObject* Find(Ref* asked) {
  const Choice* choice = g_choice.load(std::memory_order_acquire);
  if (choice != nullptr && Holds(*choice)) return choice->driver.get();
  if (PyErr_Occurred() != nullptr) return nullptr;
  *asked = CallUp(Upcall::kChooseDriver);
  return asked->get();
}

}  // namespace

culaunch::Driver* CurrentDriver() {
  Ref asked;
  PyObject* driver = Find(&asked);
  return driver != nullptr ? DriverOf(driver) : nullptr;
}

PyObject* CurrentDriverObject(PyObject*, PyObject*) {
  Ref asked;
  PyObject* driver = Find(&asked);
  return asked ? asked.release() : Ref::Borrow(driver).release();
}

PyObject* NoteDriver(PyObject*, PyObject* args) {
  PyObject *driver, *conditions;
  if (!PyArg_ParseTuple(args, "O!O!:note_driver", g_driver_type, &driver, &PyTuple_Type,
                        &conditions)) {
    return nullptr;
  }
  auto choice = std::make_unique<Choice>();
  choice->driver = Ref::Borrow(driver);
  for (Py_ssize_t i = 0; i < PyTuple_Size(conditions); ++i) {
    PyObject *dict, *key, *value;
    PyObject* item = PyTuple_GetItem(conditions, i);
    if (!PyTuple_Check(item)) {
      PyErr_SetString(PyExc_TypeError, "note_driver: a condition must be (dict, key, value)");
      return nullptr;
    }
    if (!PyArg_ParseTuple(item, "O!OO:note_driver", &PyDict_Type, &dict, &key, &value)) {
      return nullptr;
    }
    // Comparing two of these runs no other code.
    if (!PyUnicode_CheckExact(key) && !PyBytes_CheckExact(key)) {
      PyErr_SetString(PyExc_TypeError, "note_driver: a key must be a str or bytes");
      return nullptr;
    }
    choice->conditions.push_back(
        {Ref::Borrow(dict), Ref::Borrow(key), value != Py_None ? Ref::Borrow(value) : Ref()});
  }
  Choice* before = g_choice.exchange(choice.release(), std::memory_order_acq_rel);
#ifdef Py_GIL_DISABLED
  // Another thread may still read the old choice. Choices are few, so it is leaked.
  static_cast<void>(before);
#else
  delete before;
#endif
  Py_RETURN_NONE;
}
