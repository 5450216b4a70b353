#include "driver/prototypes.h"

#include <culaunch/driver_table.h>

#include <string>
#include <type_traits>

namespace {

template <class T>
std::string Word() {
  if constexpr (std::is_same_v<T, const char*>) {
    return "s";
  } else if constexpr (std::is_pointer_v<T>) {
    using Target = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_same_v<Target, CUlaunchConfig>) {
      return "*l";
    } else if constexpr (std::is_void_v<Target> || std::is_function_v<Target> ||
                         std::is_class_v<Target> || std::is_union_v<Target> ||
                         std::is_same_v<Target, char>) {
      // A buffer, a structure, a function of the caller's, or a handle, which cuda.h declares as a
      // pointer to a structure that it does not define.
      return "p";
    } else {
      return "*" + Word<Target>();
    }
  } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, int>) {
    return "i";
  } else if constexpr (std::is_same_v<T, unsigned>) {
    return "u";
  } else if constexpr (std::is_same_v<T, unsigned char>) {
    return "b";
  } else if constexpr (std::is_same_v<T, unsigned short>) {
    return "h";
  } else if constexpr (std::is_same_v<T, float>) {
    return "f";
  } else if constexpr (std::is_same_v<T, size_t>) {
    return "z";
  } else {
    static_assert(std::is_same_v<T, unsigned long long>, "say what a parameter of this type is");
    return "q";
  }
}

template <class... Parameters>
Ref Words(CUresult (*)(Parameters...)) {
  const std::string words[] = {Word<Parameters>()..., ""};
  Ref tuple(PyTuple_New(sizeof...(Parameters)));
  for (size_t i = 0; tuple && i < sizeof...(Parameters); ++i) {
    PyObject* word = PyUnicode_FromString(words[i].c_str());
    if (word == nullptr) return Ref();
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), word);
  }
  return tuple;
}

bool Add(PyObject* dict, const char* name, const Ref& words) {
  return words && PyDict_SetItemString(dict, name, words.get()) == 0;
}

}  // namespace

PyObject* Prototypes(PyObject*, PyObject*) {
  Ref dict(PyDict_New());
  if (!dict) return nullptr;
  // Only the types matter. Naming a function here would link it in builds without optimization.
  const culaunch::DriverTable table;
#define PROTOTYPE(function, version, required) \
  if (!Add(dict.get(), #function, Words(table.function))) return nullptr;
  CULAUNCH_DRIVER_FUNCTIONS(PROTOTYPE)
#undef PROTOTYPE
  return dict.release();
}
