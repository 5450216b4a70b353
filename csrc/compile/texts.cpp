#include "compile/texts.h"

namespace {

bool TakeBytes(Ref encoded, std::string* bytes) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (!encoded || PyBytes_AsStringAndSize(encoded.get(), &data, &size) != 0) return false;
  bytes->assign(data, static_cast<size_t>(size));
  return true;
}

bool RequireText(PyObject* object) {
  if (PyUnicode_Check(object) != 0) return true;
  PyErr_Format(PyExc_TypeError, "text must be a str (got %R)",
               reinterpret_cast<PyObject*>(Py_TYPE(object)));
  return false;
}

}  // namespace

bool ReadBytes(PyObject* text, std::string* bytes) {
  if (!RequireText(text)) return false;
  Py_ssize_t size = 0;
  if (const char* const plain = PyUnicode_AsUTF8AndSize(text, &size)) {
    bytes->assign(plain, static_cast<size_t>(size));
    return true;
  }
  if (PyErr_ExceptionMatches(PyExc_UnicodeError) == 0) return false;
  PyErr_Clear();
  if (TakeBytes(Ref(PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape")), bytes)) {
    return true;
  }
  if (PyErr_ExceptionMatches(PyExc_UnicodeError) == 0) return false;
  PyErr_Clear();
  return TakeBytes(Ref(PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass")), bytes);
}

bool ReadPath(PyObject* path, std::string* bytes) {
  return RequireText(path) && TakeBytes(Ref(PyUnicode_EncodeFSDefault(path)), bytes);
}

bool ReadEach(PyObject* items, bool (*read)(PyObject*, std::string*),
              std::vector<std::string>* found) {
  const Ref list(PySequence_List(items));
  if (!list) return false;
  const Py_ssize_t count = PyList_Size(list.get());
  for (Py_ssize_t i = 0; i < count; ++i) {
    std::string bytes;
    if (!read(PyList_GetItem(list.get(), i), &bytes)) return false;
    found->push_back(std::move(bytes));
  }
  return true;
}

Ref MakeText(std::string_view bytes) {
  return Ref(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape"));
}

Ref MakePath(std::string_view bytes) {
  return Ref(PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}
