#include <culaunch/launch_options.h>

#include "extension/exported_numbers.h"

int AddLaunchOptions(PyObject* module) {
  struct Option {
    const char* name;
    const char* kind;
    int flag;
    int attribute;
    const char* text;
  };
#define CULAUNCH_FIELD(kind, name, flag, text) {#name, #kind, flag, 0, text},
#define CULAUNCH_DIMS(name, flag, attribute, value, text) {#name, "dims", flag, attribute, text},
#define CULAUNCH_SWITCH(name, flag, attribute, value, text) \
  {#name, "switch", flag, attribute, text},
#define CULAUNCH_INT(name, flag, attribute, value, text) {#name, "int", flag, attribute, text},
  static constexpr Option options[] = {CULAUNCH_LAUNCH_FIELDS(
      CULAUNCH_FIELD) CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_DIMS, CULAUNCH_SWITCH, CULAUNCH_INT)};
#undef CULAUNCH_FIELD
#undef CULAUNCH_DIMS
#undef CULAUNCH_SWITCH
#undef CULAUNCH_INT
  const Ref list(PyList_New(0));
  for (const Option& option : options) {
    const Ref row(list ? Py_BuildValue("ssiis", option.name, option.kind, option.flag,
                                       option.attribute, option.text)
                       : nullptr);
    if (!row || PyList_Append(list.get(), row.get()) < 0) return -1;
  }
  const Ref tuple(list ? PyList_AsTuple(list.get()) : nullptr);
  return tuple ? PyModule_AddObjectRef(module, "LAUNCH_OPTIONS", tuple.get()) : -1;
}
