// Facts about an operand that has been read.
#include "arguments/operands.h"

namespace operands {

std::string ModuleRoot(PyTypeObject* type) {
  const Ref name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
  Py_ssize_t size = 0;
  const char* text =
      name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8AndSize(name.get(), &size) : nullptr;
  PyErr_Clear();
  const std::string module(text != nullptr ? text : "");
  return module.substr(0, module.find('.'));
}

void Operand::SetDense() {
  int64_t dense = 1;
  for (int i = ndim; i-- > 0;) {
    room[kMaxDims + i] = dense;
    dense *= shape[i];
  }
  strides = room + kMaxDims;
}

std::string Operand::ShapeText() const {
  std::string text = "(";
  for (int i = 0; i < ndim; ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + (ndim == 1 ? ",)" : ")");
}

Extent ExtentOf(const Operand& operand) {
  const DLTensor tensor = {operand.data,
                           operand.device,
                           operand.ndim,
                           TypeOf(operand.number),
                           const_cast<int64_t*>(operand.shape),
                           const_cast<int64_t*>(operand.strides),
                           0};
  return ::ExtentOf(tensor);
}

void NoteOperand(const Operand& operand, const culaunch::Driver& driver) {
  if (!operand.is_array) return;
  const Extent extent = ExtentOf(operand);
  driver.note_array(extent.begin, extent.bytes,
                    operand.is_read_only ? culaunch::kNoteReadOnlyArray : culaunch::kNoteArray);
}

void NameMistake(const std::string& what) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const Ref message(value != nullptr ? PyObject_Str(value) : nullptr);
  const bool is_mistake =
      type == PyExc_TypeError || type == PyExc_ValueError || type == PyExc_OverflowError;
  if (message && is_mistake) {
    // Most messages continue after the argument's name. Others are sentences of their own.
    const Py_UCS4 first =
        PyUnicode_GetLength(message.get()) > 0 ? PyUnicode_ReadChar(message.get(), 0) : ' ';
    const bool goes_on = first == ' ' || first == ':' || first == ',' || first == '[';
    PyErr_Format(type, "%s%s%U", what.c_str(), goes_on ? "" : ": ", message.get());
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
  } else {
    PyErr_Restore(type, value, trace);
  }
}

}  // namespace operands
