#include "function/program/program_object.h"

#include "arguments/views/element_types.h"
#include "driver/errors.h"
#include "python/type_builder.h"

namespace function {

PyTypeObject* g_program_type = nullptr;

namespace {

ProgramObject* ProgramOf(PyObject* self) { return reinterpret_cast<ProgramObject*>(self); }

// Program(words, constants, texts)
PyObject* NewProgram(PyTypeObject* type, PyObject* args, PyObject*) {
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
    ProgramOf(object)->words = Ref::Borrow(words).release();
    ProgramOf(object)->constants = Ref::Borrow(constants).release();
    ProgramOf(object)->texts = Ref::Borrow(texts).release();
    ProgramOf(object)->program = program.release();
    return object;
  });
}

int TraverseProgram(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(ProgramOf(object)->constants);
  // The replay also holds the constants.
  if (ProgramOf(object)->program->replay != nullptr) Py_VISIT(ProgramOf(object)->constants);
  return 0;
}

// A call may run the program until it is freed, so nothing is cleared.
int ClearProgram(PyObject*) { return 0; }

void DeallocProgram(PyObject* object) {
  DeallocCollected(object, [self = ProgramOf(object)] {
    delete self->program;
    Py_XDECREF(self->words);
    Py_XDECREF(self->constants);
    Py_XDECREF(self->texts);
  });
}

PyObject* GetWords(PyObject* self, void*) { return Ref::Borrow(ProgramOf(self)->words).release(); }
PyObject* GetConstants(PyObject* self, void*) {
  return Ref::Borrow(ProgramOf(self)->constants).release();
}
PyObject* GetTexts(PyObject* self, void*) { return Ref::Borrow(ProgramOf(self)->texts).release(); }

struct NamedNumber {
  const char* name;
  int number;
};

template <class Numbers>
bool SetNumbers(PyObject* format, const char* key, const Numbers& numbers) {
  const Ref dict(PyDict_New());
  for (const NamedNumber& one : numbers) {
    const Ref number(dict ? PyLong_FromLong(one.number) : nullptr);
    if (!number || PyDict_SetItemString(dict.get(), one.name, number.get()) < 0) return false;
  }
  return PyDict_SetItemString(format, key, dict.get()) == 0;
}

}  // namespace

int AddProgramType(PyObject* module) {
  g_program_type = TypeBuilder("culaunch._core.Program", sizeof(ProgramObject))
                       .Slot(Py_tp_new, NewProgram)
                       .Slot(Py_tp_dealloc, DeallocProgram)
                       .Collected(TraverseProgram, ClearProgram)
                       .Property("words", GetWords)
                       .Property("constants", GetConstants)
                       .Property("texts", GetTexts)
                       .AddTo(module);
  return g_program_type != nullptr ? 0 : -1;
}

PyObject* ProgramFormat(PyObject*, PyObject*) {
#define CULAUNCH_NAMED(enumerator, name, number) {#name, number},
  static constexpr NamedNumber effects[] = {CULAUNCH_EFFECTS(CULAUNCH_NAMED)};
  static constexpr NamedNumber sources[] = {CULAUNCH_SOURCES(CULAUNCH_NAMED)};
  static constexpr NamedNumber values[] = {CULAUNCH_VALUES(CULAUNCH_NAMED)};
#undef CULAUNCH_NAMED
#define CULAUNCH_NAMED(name, number) {#name, number},
  static constexpr NamedNumber math[] = {CULAUNCH_MATH_FUNCTIONS(CULAUNCH_NAMED)};
  static constexpr NamedNumber exceptions[] = {CULAUNCH_CHECK_EXCEPTIONS(CULAUNCH_NAMED)};
#undef CULAUNCH_NAMED
  NamedNumber types[operands::kAllTypes];
  for (uint8_t i = 0; i < operands::kAllTypes; ++i) types[i] = {operands::NameOf(i), i};
  Ref format(PyDict_New());
  const Ref opcodes(PyDict_New());
  const Ref version(PyLong_FromLong(kVersion));
  const Ref first_flags(PyLong_FromLong(kFirstFlags));
  if (!format || !opcodes || !version || !first_flags) return nullptr;
#define CULAUNCH_OPCODE(name, number, operands)                                                \
  {                                                                                            \
    const Ref entry(Py_BuildValue("(is)", number, operands));                                  \
    if (!entry || PyDict_SetItemString(opcodes.get(), #name, entry.get()) < 0) return nullptr; \
  }
  CULAUNCH_OPCODES(CULAUNCH_OPCODE)
#undef CULAUNCH_OPCODE
  const bool is_set = PyDict_SetItemString(format.get(), "version", version.get()) == 0 &&
                      PyDict_SetItemString(format.get(), "opcodes", opcodes.get()) == 0 &&
                      SetNumbers(format.get(), "effects", effects) &&
                      SetNumbers(format.get(), "sources", sources) &&
                      SetNumbers(format.get(), "values", values) &&
                      PyDict_SetItemString(format.get(), "first_flags", first_flags.get()) == 0 &&
                      SetNumbers(format.get(), "math", math) &&
                      SetNumbers(format.get(), "exceptions", exceptions) &&
                      SetNumbers(format.get(), "dtypes", types);
  return is_set ? format.release() : nullptr;
}

}  // namespace function
