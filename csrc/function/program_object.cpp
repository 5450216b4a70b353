#include "function/program_object.h"

#include "arguments/element_types.h"
#include "driver/errors.h"
#include "python/type_builder.h"

namespace function {

PyTypeObject* g_program_type = nullptr;

namespace {

ProgramObject* Self(PyObject* self) { return reinterpret_cast<ProgramObject*>(self); }

// Program(words, constants, texts)
PyObject* New(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *words, *constants, *texts;
  if (!PyArg_ParseTuple(args, "SO!O!:Program", &words, &PyTuple_Type, &constants, &PyTuple_Type,
                        &texts)) {
    return nullptr;
  }
  return Guarded<PyObject*>(nullptr, nullptr, [&]() -> PyObject* {
    std::unique_ptr<Program> program = Program::Decode(
        PyBytes_AsString(words), static_cast<size_t>(PyBytes_Size(words)), constants, texts);
    if (program == nullptr) return nullptr;
    PyObject* object = PyType_GenericAlloc(type, 0);
    if (object == nullptr) return nullptr;
    Self(object)->words = Ref::Borrow(words).release();
    Self(object)->constants = Ref::Borrow(constants).release();
    Self(object)->texts = Ref::Borrow(texts).release();
    Self(object)->program = program.release();
    return object;
  });
}

int Traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(Self(object)->constants);
  return 0;
}

// A call may run the program until it goes.
int Clear(PyObject*) { return 0; }

void Dealloc(PyObject* object) {
  DeallocCollected(object, [self = Self(object)] {
    delete self->program;
    Py_XDECREF(self->words);
    Py_XDECREF(self->constants);
    Py_XDECREF(self->texts);
  });
}

PyObject* GetWords(PyObject* self, void*) { return Ref::Borrow(Self(self)->words).release(); }
PyObject* GetConstants(PyObject* self, void*) {
  return Ref::Borrow(Self(self)->constants).release();
}
PyObject* GetTexts(PyObject* self, void*) { return Ref::Borrow(Self(self)->texts).release(); }

bool SetNumbers(PyObject* format, const char* key, const char* const* names, int count) {
  const Ref dict(PyDict_New());
  for (int i = 0; dict && i < count; ++i) {
    const Ref number(PyLong_FromLong(i));
    if (!number || PyDict_SetItemString(dict.get(), names[i], number.get()) < 0) return false;
  }
  return dict && PyDict_SetItemString(format, key, dict.get()) == 0;
}

}  // namespace

int AddProgramType(PyObject* module) {
  g_program_type = TypeBuilder("culaunch._core.Program", sizeof(ProgramObject))
                       .Slot(Py_tp_new, New)
                       .Slot(Py_tp_dealloc, Dealloc)
                       .Collected(Traverse, Clear)
                       .Property("words", GetWords)
                       .Property("constants", GetConstants)
                       .Property("texts", GetTexts)
                       .AddTo(module);
  return g_program_type != nullptr ? 0 : -1;
}

PyObject* ProgramFormat(PyObject*, PyObject*) {
  static constexpr const char* sources[] = {"array", "int",  "float",      "bool",
                                            "bytes", "null", "tensor_map", "object"};
  static constexpr const char* values[] = {"none",  "int",      "float",    "bool",
                                           "array", "argument", "constant", "tuple",
                                           "list",  "dict",     "called",   "element"};
  static constexpr const char* effects[] = {"",       "allocate", "view",  "memset",
                                            "launch", "call",     "return"};
#define CULAUNCH_TEXT_OF_NAME(name, number) #name,
  static constexpr const char* math[] = {CULAUNCH_MATH_FUNCTIONS(CULAUNCH_TEXT_OF_NAME)};
  static constexpr const char* exceptions[] = {CULAUNCH_CHECK_EXCEPTIONS(CULAUNCH_TEXT_OF_NAME)};
#undef CULAUNCH_TEXT_OF_NAME
  const char* types[operands::kAllTypes];
  for (uint8_t i = 0; i < operands::kAllTypes; ++i) types[i] = operands::NameOf(i);
  Ref format(PyDict_New());
  const Ref opcodes(PyDict_New());
  if (!format || !opcodes) return nullptr;
#define CULAUNCH_OPCODE(name, number, operands)                                                \
  {                                                                                            \
    const Ref entry(Py_BuildValue("(is)", number, operands));                                  \
    if (!entry || PyDict_SetItemString(opcodes.get(), #name, entry.get()) < 0) return nullptr; \
  }
  CULAUNCH_OPCODES(CULAUNCH_OPCODE)
#undef CULAUNCH_OPCODE
  const auto count = [](const auto& names) {
    return static_cast<int>(sizeof names / sizeof *names);
  };
  const bool is_set = PyDict_SetItemString(format.get(), "opcodes", opcodes.get()) == 0 &&
                      SetNumbers(format.get(), "sources", sources, count(sources)) &&
                      SetNumbers(format.get(), "values", values, count(values)) &&
                      SetNumbers(format.get(), "effects", effects, count(effects)) &&
                      SetNumbers(format.get(), "math", math, count(math)) &&
                      SetNumbers(format.get(), "exceptions", exceptions, count(exceptions)) &&
                      SetNumbers(format.get(), "dtypes", types, operands::kAllTypes);
  return is_set ? format.release() : nullptr;
}

}  // namespace function
