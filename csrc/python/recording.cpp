#include "python/recording.h"

#include "python/call_arguments.h"
#include "python/upcalls.h"

std::atomic<int> g_recordings{0};

CULAUNCH_RARE bool Record(PyObject* object, const char* how, PyObject* args, PyObject* keywords,
                          Ref* result) {
  *result = CallUp(Upcall::kRecord, "OsOO", object, how, args, keywords);
  if (result->get() != Py_NotImplemented) return true;
  *result = Ref();
  return false;
}

CULAUNCH_RARE bool RecordCall(PyObject* object, const char* how, PyObject* const* args,
                              size_t count, PyObject* keyword_names, Ref* result) {
  const Ref positional = PositionalTuple(args, count);
  const Ref keywords = KeywordDict(args, count, keyword_names);
  if (!positional || !keywords) return true;
  return Record(object, how, positional.get(), keywords.get(), result);
}

PyObject* BeginRecording(PyObject*, PyObject*) {
  g_recordings.fetch_add(1, std::memory_order_relaxed);
  Py_RETURN_NONE;
}

PyObject* EndRecording(PyObject*, PyObject*) {
  g_recordings.fetch_sub(1, std::memory_order_relaxed);
  Py_RETURN_NONE;
}
