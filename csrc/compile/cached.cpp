#include "compile/cached.h"

#include <culaunch/jit/store/cache_contents.h>

#include <limits>

#include "compile/guarded.h"
#include "compile/texts.h"

namespace {

using culaunch::jit::CacheContents;
using culaunch::jit::CacheEntry;
using culaunch::jit::FileError;
using culaunch::jit::TrustedDirectory;

// Return the result of `make` for a path, or raise OSError if the file system refuses.
template <class Make>
PyObject* OfDirectory(PyObject* path, const Make& make) {
  return Guarded([&] {
    std::string where;
    Require(ReadPath(path, &where));
    try {
      return make(where);
    } catch (const FileError& error) {
      const Ref facts = Required(Ref(Py_BuildValue("(isO)", error.code, error.why.c_str(), path)));
      PyErr_SetObject(PyExc_OSError, facts.get());
      throw Raised();
    }
  });
}

Ref MakeEntry(const CacheEntry& one) {
  return Ref(Py_BuildValue("(NNLL)", MakePath(one.folder).release(),
                           MakeTuple(one.names, MakePath).release(),
                           static_cast<long long>(one.size), static_cast<long long>(one.used)));
}

}  // namespace

PyObject* ListCache(PyObject*, PyObject* path) {
  return OfDirectory(path, [](const std::string& where) {
    const CacheContents found =
        Apart([&] { return CacheContents(where, std::numeric_limits<int64_t>::max()); });
    return Ref(Py_BuildValue("(NLL)", Required(MakeTuple(found.entries(), MakeEntry)).release(),
                             static_cast<long long>(found.temporary_files()),
                             static_cast<long long>(found.temporary_size())));
  });
}

PyObject* EvictFromCache(PyObject*, PyObject* args) {
  PyObject *path, *keep;
  long long most = 0;
  if (!PyArg_ParseTuple(args, "OLO:evict", &path, &most, &keep)) return nullptr;
  return OfDirectory(path, [&](const std::string& where) {
    std::string kept;
    Require(ReadPath(keep, &kept));
    const int64_t left =
        Apart([&] { return CacheContents(where, CacheContents::kStale).Evict(most, kept); });
    return Ref(PyLong_FromLongLong(left));
  });
}

PyObject* ClearCache(PyObject*, PyObject* path) {
  return OfDirectory(path, [](const std::string& where) {
    const long removed = Apart([&] { return CacheContents(where, 0).Clear(); });
    return Ref(PyLong_FromLong(removed));
  });
}

PyObject* RemoveCachedLibrary(PyObject*, PyObject* args) {
  PyObject *path, *folder, *names;
  if (!PyArg_ParseTuple(args, "OOO:remove_library", &path, &folder, &names)) return nullptr;
  return OfDirectory(path, [&](const std::string& where) {
    std::string inside;
    std::vector<std::string> files;
    Require(ReadPath(folder, &inside) && ReadEach(names, ReadPath, &files));
    const bool removed = Apart(
        [&] { return CacheContents::RemoveLibrary(TrustedDirectory::Open(where), inside, files); });
    return Ref(PyBool_FromLong(removed));
  });
}
