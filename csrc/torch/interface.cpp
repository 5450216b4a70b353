#include "torch/interface.h"

#include <dlfcn.h>

#include <string>

#include "arguments/torch/tensor.h"

namespace torch_operators {

const Interface* g_interface = nullptr;

namespace {

// Looks up names, and remembers the first missing one.
class Finder {
 public:
  explicit Finder(PyObject* libraries) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(libraries); ++i) {
      const char* path = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(libraries, i), nullptr);
      // The library is loaded already, and stays loaded.
      void* library = path != nullptr ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
      if (library == nullptr) {
        missing_ = path != nullptr ? path : "a library's path";
        PyErr_Clear();
      } else {
        libraries_.push_back(library);
      }
    }
  }

  template <class F>
  void Find(const char* name, F* function) {
    *function = nullptr;
    for (void* library : libraries_) {
      *function = reinterpret_cast<F>(dlsym(library, name));
      if (*function != nullptr) return;
    }
    if (missing_.empty()) missing_ = name;
  }

  const std::string& missing() const { return missing_; }

 private:
  std::vector<void*> libraries_;
  std::string missing_;
};

// {torch's number: dtype} for this version of torch.
Ref DtypesOf(Finder& finder, PyObject* names) {
  Ref dtypes(PyDict_New());
  for (Py_ssize_t i = 0; dtypes && i < PyTuple_Size(names); ++i) {
    const char* name;
    PyObject* dtype;
    if (!PyArg_ParseTuple(PyTuple_GetItem(names, i), "sO", &name, &dtype)) return Ref();
    int32_t (*number)() = nullptr;
    finder.Find(name, &number);
    if (number == nullptr) break;
    const Ref key(PyLong_FromLong(number()));
    if (!key || PyDict_SetItem(dtypes.get(), key.get(), dtype) < 0) return Ref();
  }
  return dtypes;
}

}  // namespace

PyObject* OpenTorch(PyObject*, PyObject* args) {
  PyObject *libraries, *tensor, *names;
  if (!PyArg_ParseTuple(args, "O!OO!:open_torch", &PyTuple_Type, &libraries, &tensor, &PyTuple_Type,
                        &names)) {
    return nullptr;
  }
  if (g_interface != nullptr) Py_RETURN_NONE;
  if (g_torch_bits.api == nullptr) {
    return PyUnicode_FromString("the place of a tensor in its Python object");
  }
  Finder finder(libraries);
  Interface found = {};
  finder.Find("aoti_torch_library_init_impl", &found.init_impl);
  finder.Find("torch_library_impl", &found.impl);
  finder.Find("aoti_torch_new_tensor_handle", &found.new_tensor);
  finder.Find("aoti_torch_delete_tensor_object", &found.delete_tensor);
  finder.Find("torch_list_size", &found.list_size);
  finder.Find("torch_list_get_item", &found.list_item);
  finder.Find("torch_delete_list", &found.delete_list);
  finder.Find("torch_string_c_str", &found.string_data);
  finder.Find("torch_string_length", &found.string_size);
  finder.Find("torch_delete_string", &found.delete_string);
  finder.Find("_Z16THPVariable_WrapRKN2at10TensorBaseE", &found.wrap);
  finder.Find("_Z20THPUtils_unpackLongsP7_object", &found.unpack_longs);
  Ref dtypes = DtypesOf(finder, names);
  if (!dtypes) return nullptr;
  if (!finder.missing().empty()) return PyUnicode_FromString(finder.missing().c_str());
  found.tensor = g_torch_bits.tensor;
  found.tensor_type = Ref::Borrow(reinterpret_cast<PyObject*>(Py_TYPE(tensor))).release();
  found.dtypes = dtypes.release();
  g_interface = new Interface(found);  // for the life of the process
  PyErr_Clear();
  Py_RETURN_NONE;
}

}  // namespace torch_operators
