#include "xla/xla_errors.h"

namespace xla_calls {

Error* MakeError(const Api& api, const char* message, int code) {
  ErrorArguments arguments = {sizeof(ErrorArguments), nullptr, message, code};
  return api.create_error(&arguments);
}

Error* TakePythonError(const Api& api) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Ref held_type(type), held_value(value), held_trace(trace);
  const Ref name(type != nullptr ? PyObject_GetAttrString(type, "__name__") : nullptr);
  const Ref text(name ? PyUnicode_FromFormat("%U: %S", name.get(), value) : nullptr);
  const char* message = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  const bool is_mistake = PyErr_GivenExceptionMatches(type, PyExc_TypeError) != 0 ||
                          PyErr_GivenExceptionMatches(type, PyExc_ValueError) != 0;
  PyErr_Clear();
  return MakeError(api, message != nullptr ? message : "the function failed",
                   is_mistake ? kInvalidArgument : kInternal);
}

std::string TakeText(const Api& api, Error* error) {
  DetailsArguments details = {sizeof(DetailsArguments), nullptr, error, nullptr, 0};
  api.error_details(&details);
  std::string text = details.message != nullptr ? details.message : "(no text)";
  DestroyArguments arguments = {sizeof(DestroyArguments), nullptr, error};
  api.destroy_error(&arguments);
  return text;
}

}  // namespace xla_calls
