#include "python/type_builder.h"

#include <structmember.h>

#include <algorithm>

namespace {

// The table that a type's slot points to, with an empty row at its end. It is never freed.
template <class Row>
PyType_Slot TableSlot(int slot, const std::vector<Row>& rows) {
  Row* const table = new Row[rows.size() + 1]();
  std::copy(rows.begin(), rows.end(), table);
  return {slot, table};
}

}  // namespace

PyTypeObject* TypeBuilder::AddTo(PyObject* module) const {
  std::vector<PyType_Slot> slots = slots_;
  if (!methods_.empty()) slots.push_back(TableSlot(Py_tp_methods, methods_));
  if (!properties_.empty()) slots.push_back(TableSlot(Py_tp_getset, properties_));
  std::vector<PyMemberDef> members;
  const auto add = [&](const char* name, int type, size_t offset) {
    members.push_back({name, type, static_cast<Py_ssize_t>(offset), READONLY, nullptr});
  };
  if (call_offset_ != 0) add("__vectorcalloffset__", T_PYSSIZET, call_offset_);
  for (const auto& [name, offset] : objects_) add(name, T_OBJECT, offset);
  if (!members.empty()) slots.push_back(TableSlot(Py_tp_members, members));
  slots.push_back({0, nullptr});
  PyType_Spec spec = {name_, static_cast<int>(size_), 0, flags_, slots.data()};
  Ref made(PyType_FromModuleAndSpec(module, &spec, nullptr));
  auto* const type = reinterpret_cast<PyTypeObject*>(made.get());
  if (type == nullptr || PyModule_AddType(module, type) < 0) return nullptr;
  made.release();
  return type;
}
