#include "compile/options.h"

#include <culaunch/jit/options.h>

#include "compile/guarded.h"
#include "compile/texts.h"

PyObject* NormalizeOptions(PyObject*, PyObject* args) {
  PyObject *std_name, *defines, *extra;
  int fast_math, line_info, debug, vectorize, device_default, relocatable, lto;
  culaunch::CompileOptions given;
  if (!PyArg_ParseTuple(args, "OO!i(ppppppp)O:normal_options", &std_name, &PyDict_Type, &defines,
                        &given.maxrregcount, &fast_math, &line_info, &debug, &vectorize,
                        &device_default, &relocatable, &lto, &extra)) {
    return nullptr;
  }
  return Guarded([&] {
    Require(ReadBytes(std_name, &given.std) && ReadEach(extra, ReadBytes, &given.extra_options));
    PyObject *name, *text;
    for (Py_ssize_t at = 0; PyDict_Next(defines, &at, &name, &text) != 0;) {
      std::string macro;
      Require(ReadBytes(name, &macro) && ReadBytes(text, &given.defines[macro]));
    }
    given.fast_math = fast_math != 0;
    given.line_info = line_info != 0;
    given.debug = debug != 0;
    given.extra_device_vectorization = vectorize != 0;
    given.device_as_default_execution_space = device_default != 0;
    given.relocatable = relocatable != 0;
    given.lto = lto != 0;
    try {
      const culaunch::jit::NormalOptions options(given);
      return Ref(Py_BuildValue("(NNNN)",
                               Required(MakeTuple(options.FieldFlags(), MakeText)).release(),
                               Required(MakeTuple(options.get().extra_options, MakeText)).release(),
                               Required(MakeTuple(options.ForcedIncludes(), MakeText)).release(),
                               Required(MakeText(options.DefineLines())).release()));
    } catch (const culaunch::Error& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
      throw Raised();
    }
  });
}

PyObject* WhyOptionIsRefused(PyObject*, PyObject* option) {
  return Guarded([&] {
    std::string word;
    Require(ReadBytes(option, &word));
    return MakeText(culaunch::jit::WhyRefused(word));
  });
}
