#include "triton/variants/tuning.h"

namespace triton {

bool ReadShapePart(const KeyPart& part, const DLTensor& tensor, uint64_t* word) {
  // Code that reads a whole shape reads only its first eight dimensions.
  const int rank = tensor.ndim;
  if (rank > kMostDimensions || (rank > 0 && tensor.strides == nullptr)) return false;
  if (part.kind == KeyKind::kRank) {
    *word = static_cast<uint64_t>(rank);
    return true;
  }
  if (part.kind == KeyKind::kCount) {
    *word = 1;
    for (int i = 0; i < rank; ++i) *word *= static_cast<uint64_t>(tensor.shape[i]);
    return true;
  }
  const int dimension = part.index < 0 ? part.index + rank : part.index;
  const int64_t* numbers = part.kind == KeyKind::kSize ? tensor.shape : tensor.strides;
  const bool is_there = dimension >= 0 && dimension < rank;
  *word = is_there ? static_cast<uint64_t>(numbers[dimension]) : ~uint64_t{0};
  return true;
}

Ref TunedChoice::Settings(const Parameter* parameters) const {
  Ref dict(PyDict_New());
  if (!dict) return dict;
  for (const auto& one : constants) {
    PyObject* name = parameters[one.name].name.get();
    if (PyDict_SetItem(dict.get(), name, one.value.get()) < 0) return Ref();
  }
  for (const auto& one : options) {
    if (PyDict_SetItem(dict.get(), one.name.get(), one.value.get()) < 0) return Ref();
  }
  return dict;
}

int TunedChoice::Traverse(visitproc visit, void* arg, unsigned traversal) const {
  if (last_traversal == traversal) return 0;
  last_traversal = traversal;
  for (const auto& one : constants) Py_VISIT(one.value.get());
  for (const auto& one : options) Py_VISIT(one.value.get());
  for (const auto& one : blocks) Py_VISIT(one.second.get());
  Py_VISIT(config.get());
  return 0;
}

std::shared_ptr<const TunedChoice> TunedChoice::Read(const Parameter* parameters, size_t count,
                                                     PyObject* tuned, PyObject** result,
                                                     bool* is_kept) {
  PyObject* constants = nullptr;
  PyObject* options = nullptr;
  PyObject* config = nullptr;
  PyObject* replaced = nullptr;
  PyObject* blocks = nullptr;
  int has_hook = 0;
  int keeps = 0;
  if (!PyArg_ParseTuple(tuned, "O!O!OpOO!pO!", &PyDict_Type, &constants, &PyDict_Type, &options,
                        &config, &has_hook, result, &PyFrozenSet_Type, &replaced, &keeps,
                        &PyDict_Type, &blocks)) {
    return nullptr;
  }
  auto choice = std::make_shared<TunedChoice>();
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(constants, &position, &name, &value) != 0) {
    const int index = FindParameter(parameters, count, name);
    if (index < 0) continue;
    choice->sets_arguments |= !parameters[index].is_constexpr;
    choice->constants.push_back(
        {static_cast<size_t>(index), Ref::Borrow(value), PySet_Contains(replaced, name) == 1});
  }
  position = 0;
  while (PyDict_Next(options, &position, &name, &value) != 0) {
    choice->options.push_back(
        {Ref::Borrow(name), Ref::Borrow(value), PySet_Contains(replaced, name) == 1});
  }
  position = 0;
  while (PyDict_Next(blocks, &position, &name, &value) != 0) {
    const int index = FindParameter(parameters, count, name);
    if (index >= 0) choice->blocks.emplace_back(static_cast<size_t>(index), Ref::Borrow(value));
  }
  choice->config = Ref::Borrow(config);
  choice->has_hook = has_hook != 0;
  *is_kept = keeps != 0;
  return choice;
}

}  // namespace triton
