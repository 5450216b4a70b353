#include "function/program/problems.h"

#include <string>

#include "python/upcalls.h"

namespace function {

namespace {

PyObject* ObjectOf(Word word, RegisterType type) {
  if (type == RegisterType::kFloat) return PyFloat_FromDouble(AsFloat(word));
  if (type == RegisterType::kBool) return PyBool_FromLong(word != 0);
  return PyLong_FromLongLong(word);
}

// Raise a check's exception; {0}, {1}, ... in its text are the registers, and {{ is a brace.
void RaiseCheck(const Program& program, const Instruction& one, const Word* registers) {
  const Check& check = program.checks[static_cast<size_t>(one.value)];
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(program.Text(one.text), &size);
  if (text == nullptr) return;
  const std::string message(text, static_cast<size_t>(size));
  std::string filled;
  for (size_t at = 0; at < message.size();) {
    size_t end = at + 1;
    size_t number = 0;
    if (message.compare(at, 2, "{{") == 0) ++at;
    while (message[at] == '{' && end > at && end < message.size() && message[end] >= '0' &&
           message[end] <= '9' && end < at + 4) {
      number = number * 10 + static_cast<size_t>(message[end++] - '0');
    }
    const bool is_field = end > at + 1 && end < message.size() && message[end] == '}' &&
                          number < check.registers.size();
    if (!is_field) {
      filled += message[at++];
      continue;
    }
    const Ref value(ObjectOf(registers[check.registers[number]], check.types[number]));
    const Ref spelled(value ? PyObject_Repr(value.get()) : nullptr);
    const char* shown = spelled ? PyUnicode_AsUTF8AndSize(spelled.get(), nullptr) : nullptr;
    if (shown == nullptr) return;
    filled += shown;
    at = end + 1;
  }
#define CULAUNCH_EXCEPTION(name, number) PyExc_##name,
  PyObject* const exceptions[] = {CULAUNCH_CHECK_EXCEPTIONS(CULAUNCH_EXCEPTION)};
#undef CULAUNCH_EXCEPTION
  PyErr_SetString(exceptions[check.exception], filled.c_str());
}

// Set a built-in exception with a short message. The subclass writes a longer one.
void RaisePlainly(const Program& program, const Instruction& one, Problem problem,
                  const Word* registers) {
  if (one.opcode == Opcode::kCHECK) return RaiseCheck(program, one, registers);
  if (one.opcode == Opcode::kDIMENSION) {
    PyErr_Format(PyExc_ValueError, "a dimension must be from 1 to %lld (got %lld)",
                 static_cast<long long>(one.value), static_cast<long long>(registers[one.x]));
  } else if (HasCheck(one.opcode)) {
    const Ref value(one.opcode == Opcode::kRANGE ? PyLong_FromLongLong(registers[one.x])
                                                 : PyFloat_FromDouble(AsFloat(registers[one.x])));
    if (!value) return;
    PyErr_Format(PyExc_OverflowError, "%R does not fit %d bits", value.get(),
                 one.opcode == Opcode::kRANGE ? 8 * one.y : static_cast<int>(one.value));
  } else if (problem == Problem::kOverflow) {
    PyErr_SetString(PyExc_OverflowError, "the result does not fit 64 bits");
  } else if (problem == Problem::kZeroDivision) {
    PyErr_SetString(PyExc_ZeroDivisionError, "division by zero");
  } else if (problem == Problem::kNegativeShift) {
    PyErr_SetString(PyExc_ValueError, "negative shift count");
  } else if (problem == Problem::kNegativePower) {
    PyErr_SetString(PyExc_ValueError, "an int to a negative power is not an int");
  } else if (problem == Problem::kNan) {
    PyErr_SetString(PyExc_ValueError, "cannot convert float NaN to integer");
  } else if (problem == Problem::kInfinity) {
    PyErr_SetString(PyExc_OverflowError, "cannot convert float infinity to integer");
  }
  PrefixError(program.Text(one.text));
}

long long DetailOf(const Program& program, const Instruction& one) {
  switch (one.opcode) {
    case Opcode::kCHECK:
      return program.checks[static_cast<size_t>(one.value)].exception;
    case Opcode::kMATH:
    case Opcode::kDIMENSION:
      return one.value;
    case Opcode::kRANGE:
    case Opcode::kFLOAT_RANGE:
      return one.y | one.value << 8;
    default:
      return 0;
  }
}

// The values of an instruction's operands, as a tuple.
Ref ValuesOf(const Program& program, const Instruction& one, const Word* registers) {
  const Ref values(PyList_New(0));
  const auto add = [&](int32_t index, RegisterType type) {
    const Ref value(ObjectOf(registers[index], type));
    return value && PyList_Append(values.get(), value.get()) == 0;
  };
  if (!values) return Ref();
  if (one.opcode == Opcode::kCHECK) {
    const Check& check = program.checks[static_cast<size_t>(one.value)];
    for (size_t i = 0; i < check.registers.size(); ++i) {
      if (!add(check.registers[i], check.types[i])) return Ref();
    }
    return Ref(PyList_AsTuple(values.get()));
  }
  const int32_t operands[] = {one.x, HasCheck(one.opcode) ? -1 : one.y, one.z};
  size_t next = 0;
  for (const char* form = OperandsOf(one.opcode); *form != 0; ++form) {
    const RegisterType type = *form == 'i'                   ? RegisterType::kInt
                              : *form == 'f' || *form == 'g' ? RegisterType::kFloat
                              : *form == 'b'                 ? RegisterType::kBool
                                                             : RegisterType::kUndefined;
    if (type == RegisterType::kUndefined) continue;
    const int32_t index = operands[next++];
    if (index >= 0 && !add(index, type)) return Ref();
  }
  return Ref(PyList_AsTuple(values.get()));
}

}  // namespace

CULAUNCH_RARE void RaiseProblem(PyObject* self, const Program& program, const Instruction& one,
                                Problem problem, const Word* registers) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const Ref values = ValuesOf(program, one, registers);
  PyObject* text = program.Text(one.text);
  const Ref done(values ? PyObject_CallMethod(self, methods::kFail, "iLOO",
                                              static_cast<int>(one.opcode), DetailOf(program, one),
                                              text != nullptr ? text : Py_None, values.get())
                        : nullptr);
  if (PyErr_Occurred() != nullptr) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return;
  }
  PyErr_Restore(type, value, trace);
  RaisePlainly(program, one, problem, registers);
}

CULAUNCH_RARE void PrefixError(PyObject* text) {
  if (text == nullptr) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref held_type(type), held_trace(trace);
  Ref held(value);
  // The exception keeps its type and its other attributes.
  const Ref args(value != nullptr ? PyObject_GetAttrString(value, "args") : nullptr);
  const Py_ssize_t count = args && PyTuple_Check(args.get()) ? PyTuple_Size(args.get()) : 0;
  PyObject* first = count > 0 ? PyTuple_GetItem(args.get(), 0) : nullptr;
  if (first != nullptr && PyUnicode_Check(first)) {
    const Ref message(PyUnicode_FromFormat("%U: %U", text, first));
    const Ref renewed(PyTuple_New(count));
    for (Py_ssize_t i = 1; renewed && i < count; ++i) {
      PyTuple_SetItem(renewed.get(), i, Ref::Borrow(PyTuple_GetItem(args.get(), i)).release());
    }
    if (message && renewed) {
      PyTuple_SetItem(renewed.get(), 0, Ref::Borrow(message.get()).release());
      PyObject_SetAttrString(value, "args", renewed.get());
    }
  }
  PyErr_Clear();
  if (held) PyErr_SetObject(held_type.get(), held.get());
}

}  // namespace function
