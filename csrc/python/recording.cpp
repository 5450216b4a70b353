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

PyObject* CountBodies(PyObject*, PyObject* args) {
  int change = 0;
  if (!PyArg_ParseTuple(args, "i:count_bodies", &change)) return nullptr;
  g_recordings.fetch_add(change, std::memory_order_relaxed);
  Py_RETURN_NONE;
}

PyObject* AroundCollection(PyObject*, PyObject* args) {
  if (!IsRecording()) Py_RETURN_NONE;
  PyObject *phase, *info;
  if (!PyArg_ParseTuple(args, "OO:around_collection", &phase, &info)) return nullptr;
  return CallUp(Upcall::kAroundCollection, "(O)", phase).release();
}
