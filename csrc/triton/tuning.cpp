#include "triton/tuning.h"

namespace triton {

int TunedChoice::Traverse(visitproc visit, void* arg, unsigned traversal) const {
  if (last_traversal == traversal) return 0;
  last_traversal = traversal;
  for (const auto& [parameter, value] : constants) Py_VISIT(value.get());
  for (const auto& [name, value] : options) Py_VISIT(value.get());
  Py_VISIT(config.get());
  return 0;
}

std::shared_ptr<const TunedChoice> TunedChoice::Read(const Parameter* parameters, size_t count,
                                                     PyObject* tuned, PyObject** result) {
  PyObject* constants = nullptr;
  PyObject* options = nullptr;
  PyObject* config = nullptr;
  int has_hook = 0;
  if (!PyArg_ParseTuple(tuned, "O!O!OpO", &PyDict_Type, &constants, &PyDict_Type, &options, &config,
                        &has_hook, result)) {
    return nullptr;
  }
  auto choice = std::make_shared<TunedChoice>();
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(constants, &position, &name, &value) != 0) {
    const int index = FindParameter(parameters, count, name);
    if (index < 0) continue;
    choice->constants.emplace_back(static_cast<size_t>(index), Ref::Borrow(value));
  }
  position = 0;
  while (PyDict_Next(options, &position, &name, &value) != 0) {
    choice->options.emplace_back(Ref::Borrow(name), Ref::Borrow(value));
  }
  choice->config = Ref::Borrow(config);
  choice->has_hook = has_hook != 0;
  return choice;
}

}  // namespace triton
