#include "triton/grids/grid_memo.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "python/function_parts.h"
#include "python/numbers.h"
#include "python/upcalls.h"

namespace triton {

const GridMemo::Plan* GridMemo::PlanOf(PyObject* grid) const {
  Ref code;
  for (const std::unique_ptr<Plan>& plan : plans_) {
    if (plan->type != Py_TYPE(grid)) continue;
    if (!code) code = CodeOf(grid);
    if (!code) {
      PyErr_Clear();
      return nullptr;
    }
    if (plan->code.get() != code.get()) continue;
    if (!plan->globals) return plan.get();
    const Ref globals = GlobalsOf(grid);
    if (!globals) PyErr_Clear();
    if (globals.get() == plan->globals.get()) return plan.get();
  }
  return nullptr;
}

// Add an object's value to the values that were read. False if the value does not describe it
// completely.
bool GridMemo::Add(const Plan& plan, PyObject* object, bool is_held, Values* read,
                   std::vector<Ref>* kept) {
  if (read->count == kMost) return false;
  if (object == nullptr) return false;  // a saved kernel set's variant provides it, and may change
  Value& value = read->values[read->count++];
  value = {Py_TYPE(object), 0};
  if (object == Py_None) return true;
  if (PyLong_CheckExact(object) != 0) {
    int64_t number = 0;
    if (ReadInt(object, &number) != IntRange::kSigned) return false;
    value.bits = static_cast<uint64_t>(number);
    return true;
  }
  if (PyFloat_CheckExact(object) != 0) {
    const double number = ReadFloat(object);
    std::memcpy(&value.bits, &number, sizeof number);
    return true;
  }
  const bool is_fixed =
      PyBool_Check(object) != 0 || PyUnicode_CheckExact(object) != 0 ||
      (is_held && std::any_of(plan.held.begin(), plan.held.end(),
                              [&](const Ref& one) { return one.get() == object; }));
  if (!is_fixed) return false;
  value.bits = reinterpret_cast<uintptr_t>(object);
  if (kept != nullptr) kept->push_back(Ref::Borrow(object));
  return true;
}

bool GridMemo::Read(const Plan& plan, PyObject* grid, const ArgumentsOfCall& arguments,
                    Values* read, std::vector<Ref>* kept) {
  for (const int parameter : plan.numbers) {
    if (!Add(plan, arguments[static_cast<size_t>(parameter)], false, read, kept)) return false;
  }
  for (const int parameter : plan.nones) {
    if (read->count == kMost) return false;
    PyObject* object = arguments[static_cast<size_t>(parameter)];
    read->values[read->count++] = {nullptr, object == nullptr ? 0u : object == Py_None ? 1u : 2u};
  }
  if (plan.held.empty()) return true;
  const Ref closure = ClosureOf(grid);
  if (!closure || PyTuple_Check(closure.get()) == 0) {
    PyErr_Clear();
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(closure.get()); ++i) {
    const Ref contents = ContentsOf(PyTuple_GetItem(closure.get(), i));
    if (!contents) PyErr_Clear();
    if (!contents || !Add(plan, contents.get(), true, read, kept)) return false;
  }
  return true;
}

bool GridMemo::Find(PyObject* grid, const ArgumentsOfCall& arguments, uint32_t* dims) const {
#ifndef Py_GIL_DISABLED
  const Plan* plan = PlanOf(grid);
  if (plan == nullptr || plan->is_called) return false;
  Values read;
  if (!Read(*plan, grid, arguments, &read, nullptr)) return false;
  for (const Answer& answer : plan->answers) {
    if (std::equal(read.values.begin(), read.values.begin() + read.count,
                   answer.read.values.begin(), answer.read.values.begin() + answer.read.count)) {
      std::copy(answer.dims, answer.dims + 3, dims);
      return true;
    }
  }
#else
  (void)grid, (void)arguments, (void)dims;
#endif
  return false;
}

// Null with a Python error set, or if the function has no code.
std::unique_ptr<GridMemo::Plan> GridMemo::MakePlan(PyObject* dispatcher, PyObject* grid) {
  Ref code = CodeOf(grid);
  if (!code) {
    PyErr_Clear();
    return nullptr;
  }
  const Ref read(PyObject_CallMethod(dispatcher, methods::kReadGrid, "(O)", grid));
  if (!read) return nullptr;
  auto plan = std::make_unique<Plan>();
  plan->code = std::move(code);
  plan->type = Py_TYPE(grid);
  if (read.get() == Py_None) {
    plan->is_called = true;
    return plan;
  }
  PyObject* lists[3];
  int uses_globals = 0;
  if (!PyArg_ParseTuple(read.get(), "O!O!O!p", &PyTuple_Type, &lists[0], &PyTuple_Type, &lists[1],
                        &PyTuple_Type, &lists[2], &uses_globals)) {
    return nullptr;
  }
  std::vector<int>* targets[] = {&plan->numbers, &plan->nones};
  for (int i = 0; i < 2; ++i) {
    for (Py_ssize_t k = 0; k < PyTuple_Size(lists[i]); ++k) {
      targets[i]->push_back(static_cast<int>(PyLong_AsLong(PyTuple_GetItem(lists[i], k))));
    }
  }
  for (Py_ssize_t k = 0; k < PyTuple_Size(lists[2]); ++k) {
    plan->held.push_back(Ref::Borrow(PyTuple_GetItem(lists[2], k)));
  }
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (uses_globals != 0) {
    plan->globals = GlobalsOf(grid);
    if (!plan->globals) return nullptr;
  }
  return plan;
}

bool GridMemo::Learn(PyObject* dispatcher, PyObject* grid, const ArgumentsOfCall& arguments,
                     const uint32_t* dims) {
#ifndef Py_GIL_DISABLED
  if (PlanOf(grid) == nullptr) {
    if (plans_.size() == kPlans) return true;
    std::unique_ptr<Plan> made = MakePlan(dispatcher, grid);
    if (made == nullptr) return PyErr_Occurred() == nullptr;
    if (PlanOf(grid) == nullptr) plans_.push_back(std::move(made));
  }
  auto* plan = const_cast<Plan*>(PlanOf(grid));
  if (plan == nullptr || plan->is_called) return true;
  Answer answer;
  if (!Read(*plan, grid, arguments, &answer.read, &answer.kept)) return true;
  std::copy(dims, dims + 3, answer.dims);
  if (plan->answers.size() < kAnswers) {
    plan->answers.push_back(std::move(answer));
  } else {
    std::swap(plan->answers[plan->next], answer);  // the previous one is freed at the end
    plan->next = (plan->next + 1) % kAnswers;
  }
#else
  (void)dispatcher, (void)grid, (void)arguments, (void)dims;
#endif
  return true;
}

void GridMemo::Clear() {
  const std::vector<std::unique_ptr<Plan>> before = std::move(plans_);
  plans_.clear();
}

int GridMemo::Traverse(visitproc visit, void* arg) const {
  for (const std::unique_ptr<Plan>& plan : plans_) {
    Py_VISIT(plan->code.get());
    Py_VISIT(plan->globals.get());
    for (const Ref& one : plan->held) Py_VISIT(one.get());
  }
  return 0;
}

}  // namespace triton
