#include "function/kinds/bind.h"

#include <string>

#include "python/text_of.h"

namespace function {

namespace {

constexpr int kPositionalOnly = 0;
constexpr int kKeywordOnly = 2;

// 'a', 'b', and 'c', as Python lists them.
std::string List(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) {
      text += names.size() == 2 ? " and " : i + 1 == names.size() ? ", and " : ", ";
    }
    text += "'" + names[i] + "'";
  }
  return text;
}

CULAUNCH_RARE bool RaiseMissing(const State& state, PyObject* const* bound) {
  std::vector<std::string> positional;
  std::vector<std::string> keyword;
  for (size_t i = 0; i < state.parameters.size(); ++i) {
    if (bound[i] != nullptr) continue;
    const Parameter& parameter = state.parameters[i];
    (parameter.kind == kKeywordOnly ? keyword : positional).push_back(TextOf(parameter.name.get()));
  }
  const bool is_positional = !positional.empty();
  const std::vector<std::string>& names = is_positional ? positional : keyword;
  PyErr_Format(PyExc_TypeError, "%U() missing %zu required %s argument%s: %s", state.name.get(),
               names.size(), is_positional ? "positional" : "keyword-only",
               names.size() == 1 ? "" : "s", List(names).c_str());
  return false;
}

CULAUNCH_RARE bool RaiseTooMany(const State& state, size_t count) {
  size_t required = 0;
  for (const Parameter& parameter : state.parameters) {
    if (parameter.kind != kKeywordOnly && !parameter.default_value) ++required;
  }
  const std::string takes =
      required == state.positional
          ? std::to_string(required)
          : "from " + std::to_string(required) + " to " + std::to_string(state.positional);
  PyErr_Format(PyExc_TypeError, "%U() takes %s positional argument%s but %zu %s given",
               state.name.get(), takes.c_str(),
               required == state.positional && required == 1 ? "" : "s", count,
               count == 1 ? "was" : "were");
  return false;
}

}  // namespace

bool Bind(const State& state, PyObject* const* args, size_t count, PyObject* keyword_names,
          PyObject** bound) {
  const size_t size = state.parameters.size();
  if (count > state.positional) return RaiseTooMany(state, count);
  for (size_t i = 0; i < size; ++i) bound[i] = i < count ? args[i] : nullptr;
  const Py_ssize_t named = keyword_names != nullptr ? PyTuple_Size(keyword_names) : 0;
  for (Py_ssize_t k = 0; k < named; ++k) {
    PyObject* name = PyTuple_GetItem(keyword_names, k);
    size_t found = size;
    // Keyword names are usually identical objects.
    for (size_t i = 0; i < size && found == size; ++i) {
      if (state.parameters[i].name.get() == name) found = i;
    }
    for (size_t i = 0; i < size && found == size; ++i) {
      if (PyUnicode_Compare(state.parameters[i].name.get(), name) == 0) found = i;
    }
    if (found == size) {
      PyErr_Format(PyExc_TypeError, "%U() got an unexpected keyword argument '%U'",
                   state.name.get(), name);
      return false;
    }
    if (state.parameters[found].kind == kPositionalOnly) {
      PyErr_Format(PyExc_TypeError,
                   "%U() got some positional-only arguments passed as keyword arguments: '%U'",
                   state.name.get(), name);
      return false;
    }
    if (bound[found] != nullptr) {
      PyErr_Format(PyExc_TypeError, "%U() got multiple values for argument '%U'", state.name.get(),
                   name);
      return false;
    }
    bound[found] = args[count + static_cast<size_t>(k)];
  }
  bool is_complete = true;
  for (size_t i = 0; i < size; ++i) {
    if (bound[i] == nullptr) bound[i] = state.parameters[i].default_value.get();
    is_complete = is_complete && bound[i] != nullptr;
  }
  return is_complete || RaiseMissing(state, bound);
}

}  // namespace function
