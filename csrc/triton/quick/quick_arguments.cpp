#include "triton/quick/quick_arguments.h"

#include "triton/grids/grid.h"

namespace triton {

int ArgumentOf(PyObject* name, size_t index, size_t count, PyObject* keyword_names) {
  if (index < count) return static_cast<int>(index);
  const Py_ssize_t size = keyword_names != nullptr ? PyTuple_Size(keyword_names) : 0;
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (PyUnicode_Compare(PyTuple_GetItem(keyword_names, i), name) == 0) {
      return static_cast<int>(count) + static_cast<int>(i);
    }
  }
  return -1;
}

bool AreSameNames(PyObject* one, PyObject* other) {
  if (one == other) return true;
  if (one == nullptr || other == nullptr) return false;
  const Py_ssize_t size = PyTuple_Size(one);
  if (PyTuple_Size(other) != size) return false;
  for (Py_ssize_t i = 0; i < size; ++i) {  // both are interned, nearly always
    if (PyTuple_GetItem(one, i) != PyTuple_GetItem(other, i)) return false;
  }
  return true;
}

// The value that a decorator set for a parameter; null if it set none.
PyObject* QuickArguments::Chosen(size_t parameter) const {
  if (found_ == nullptr || found_->choice == nullptr) return nullptr;
  for (const auto& one : found_->choice->constants) {
    if (one.name == parameter) return one.value.get();
  }
  return nullptr;
}

PyObject* QuickArguments::operator[](size_t parameter) const {
  PyObject* const chosen = Chosen(parameter);
  if (chosen != nullptr) return chosen;
  if (parameter < count_) return args_[parameter];
  const Parameter& asked = state_.parameters[parameter];
  const Py_ssize_t size = keyword_names_ != nullptr ? PyTuple_Size(keyword_names_) : 0;
  for (Py_ssize_t k = 0; k < size; ++k) {  // both are interned, nearly always
    if (PyTuple_GetItem(keyword_names_, k) == asked.name.get()) {
      return args_[count_ + static_cast<size_t>(k)];
    }
  }
  const int argument = ArgumentOf(asked.name.get(), parameter, count_, keyword_names_);
  return argument >= 0 ? args_[argument] : asked.default_value.get();
}

bool QuickArguments::Ask(PyObject* grid, uint32_t* dims) const {
  const Ref dict(PyDict_New());
  for (size_t i = 0; dict && i < state_.count; ++i) {
    PyObject* const value = (*this)[i];
    if (value == nullptr) {
      if (!state_.parameters[i].is_optional) return false;
    } else if (PyDict_SetItem(dict.get(), state_.parameters[i].name.get(), value) < 0) {
      return false;
    }
  }
  return dict && AskGrid(grid, dict.get(), found_ != nullptr ? found_->variant : nullptr,
                         state_.falls_back, dims);
}

}  // namespace triton
