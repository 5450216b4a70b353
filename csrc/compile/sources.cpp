#include "compile/sources.h"

#include <culaunch/jit/files/includes.h>
#include <culaunch/jit/store/key.h>

#include "compile/guarded.h"
#include "compile/texts.h"

namespace {

using culaunch::jit::FileIdentity;
using culaunch::jit::FoundFile;
using culaunch::jit::Includes;
using culaunch::jit::LackingDirectory;
using culaunch::jit::Search;

// In-memory headers. The texts own their bytes.
void ReadHeaders(PyObject* headers, Search* search, std::vector<Ref>* texts) {
  PyObject *name, *text;
  for (Py_ssize_t at = 0; PyDict_Next(headers, &at, &name, &text) != 0;) {
    std::string key;
    Py_ssize_t size = 0;
    Require(ReadBytes(name, &key));
    const char* const bytes = PyUnicode_AsUTF8AndSize(text, &size);
    Require(bytes != nullptr);
    texts->push_back(Ref::Borrow(text));
    search->headers.emplace(std::move(key), std::string_view(bytes, static_cast<size_t>(size)));
  }
}

// The fields of culaunch._includes.closure.Search in order, without the headers and `system`.
void ReadSearch(PyObject* fields, Search* search) {
  PyObject *dirs, *quoted, *own, *identity, *working, *forced, *defines, *unknown;
  Require(PyArg_ParseTuple(fields, "OOOOOOOO:search", &dirs, &quoted, &own, &identity, &working,
                           &forced, &defines, &unknown) != 0);
  std::vector<std::string> own_dirs;
  Require(ReadEach(dirs, ReadPath, &search->dirs) &&
          ReadEach(quoted, ReadPath, &search->quoted_dirs) && ReadEach(own, ReadPath, &own_dirs) &&
          ReadBytes(identity, &search->identity) && ReadPath(working, &search->working) &&
          ReadEach(forced, ReadBytes, &search->forced) && ReadBytes(defines, &search->defines) &&
          ReadBytes(unknown, &search->unknown));
  search->own.insert(own_dirs.begin(), own_dirs.end());
}

Ref MakeIdentity(const std::optional<FileIdentity>& identity) {
  if (!identity) return Ref::Borrow(Py_None);
  return Ref(Py_BuildValue(
      "(KKLLL)", static_cast<unsigned long long>(identity->device),
      static_cast<unsigned long long>(identity->inode), static_cast<long long>(identity->size),
      static_cast<long long>(identity->modified), static_cast<long long>(identity->changed)));
}

Ref Tuple(Ref first, Ref second) {
  return Ref(PyTuple_Pack(2, Required(std::move(first)).get(), Required(std::move(second)).get()));
}

// (found, lacking, absent): the fields of culaunch._includes.footprint.Footprint.
Ref MakeFootprint(const culaunch::jit::Footprint& footprint) {
  Ref files = Required(MakeTuple(footprint.found, [](const FoundFile& one) {
    return Ref(Py_BuildValue("(NNnN)", MakePath(one.path).release(), MakeText(one.digest).release(),
                             static_cast<Py_ssize_t>(one.first),
                             MakeIdentity(one.identity).release()));
  }));
  Ref lacking = Required(MakeTuple(footprint.lacking, [](const LackingDirectory& one) {
    return Ref(Py_BuildValue("(NNN)", MakePath(one.path).release(),
                             MakeIdentity(one.identity).release(),
                             MakeTuple(one.names, MakePath).release()));
  }));
  return Ref(Py_BuildValue("(NNN)", files.release(), lacking.release(),
                           Required(MakeTuple(footprint.absent, MakePath)).release()));
}

Ref MakeIncludes(const Includes& found) {
  Ref footprint = Required(MakeFootprint(found.footprint));
  Ref memory = Required(MakeTuple(found.memory, [](const auto& one) {
    return Tuple(MakeText(one.first), MakeText(one.second));
  }));
  return Ref(Py_BuildValue("(NNNNnONN)", Required(MakeText(found.text)).release(),
                           Required(MakeText(found.digest)).release(), memory.release(),
                           Required(MakeTuple(found.missing, MakeText)).release(),
                           static_cast<Py_ssize_t>(found.system_files),
                           found.IsHeavy() ? Py_True : Py_False, footprint.release(),
                           Required(MakeText(found.unknown)).release()));
}

}  // namespace

PyObject* FollowSource(PyObject*, PyObject* args) {
  PyObject *text, *path, *headers, *fields, *system;
  if (!PyArg_ParseTuple(args, "OOO!O!O:follow", &text, &path, &PyDict_Type, &headers, &PyTuple_Type,
                        &fields, &system)) {
    return nullptr;
  }
  return Guarded([&] {
    std::string source, where;
    Require(ReadBytes(text, &source) && ReadPath(path, &where));
    std::vector<Ref> texts;
    Search search;
    ReadHeaders(headers, &search, &texts);
    ReadSearch(fields, &search);
    std::optional<std::vector<std::string>> dirs;
    Includes found;
    {
      WithoutPython without;
      search.system = [&]() -> const std::vector<std::string>& {
        if (dirs) return *dirs;
        without.Ask([&] {
          std::vector<std::string> asked;
          const Ref answer(PyObject_CallObject(system, nullptr));
          Require(answer && ReadEach(answer.get(), ReadPath, &asked));
          dirs = std::move(asked);
        });
        return *dirs;
      };
      found = culaunch::jit::FollowIncludes(std::move(source), where, search);
    }
    return MakeIncludes(found);
  });
}

PyObject* LookAt(PyObject*, PyObject* paths) {
  return Guarded([&] {
    std::vector<std::string> all;
    Require(ReadEach(paths, ReadPath, &all));
    culaunch::jit::Footprint footprint;
    {
      const WithoutPython without;
      culaunch::jit::DiskView view;
      for (const std::string& path : all) view.Read(path);
      footprint = view.Finish();
    }
    return MakeFootprint(footprint);
  });
}

PyObject* SourceFacts(PyObject*, PyObject* text) {
  return Guarded([&] {
    std::string bytes;
    Require(ReadBytes(text, &bytes));
    const bool is_alone = culaunch::jit::ScanText(bytes).IsEmpty();
    return Tuple(MakeText(culaunch::jit::HexDigest(bytes)), Ref(PyBool_FromLong(is_alone)));
  });
}

PyObject* ImageKey(PyObject*, PyObject* args) {
  PyObject *texts, *archs, *flags, *names, *dirs;
  int lto = 0;
  if (!PyArg_ParseTuple(args, "OOOOpO:cache_key", &texts, &archs, &flags, &names, &lto, &dirs)) {
    return nullptr;
  }
  return Guarded([&] {
    culaunch::jit::KeyParts parts;
    std::vector<std::string> single;
    Require(ReadEach(texts, ReadBytes, &single) && ReadEach(archs, ReadBytes, &parts.archs) &&
            ReadEach(flags, ReadBytes, &parts.flags) && ReadEach(names, ReadBytes, &parts.names));
    if (single.size() != 5) {
      PyErr_SetString(PyExc_ValueError, "cache_key takes five texts");
      throw Raised();
    }
    parts.backend = single[0];
    parts.identity = single[1];
    parts.source_digest = single[2];
    parts.name = single[3];
    parts.includes_digest = single[4];
    parts.lto = lto != 0;
    if (dirs != Py_None) {
      const Ref list = Required(Ref(PySequence_List(dirs)));
      parts.dirs.emplace();
      for (Py_ssize_t i = 0; i < PyList_Size(list.get()); ++i) {
        PyObject* const one = PyList_GetItem(list.get(), i);
        std::string path;
        Require(one == Py_None || ReadPath(one, &path));
        parts.dirs->push_back(one == Py_None ? std::nullopt : std::make_optional(path));
      }
    }
    return MakeText(culaunch::jit::CacheKey(std::move(parts)));
  });
}

PyObject* SourceIncludesKey(PyObject*, PyObject* args) {
  PyObject *digest, *path, *headers, *fields, *system;
  if (!PyArg_ParseTuple(args, "OOOO!O:includes_key", &digest, &path, &headers, &PyTuple_Type,
                        &fields, &system)) {
    return nullptr;
  }
  return Guarded([&] {
    std::string source, where, memory;
    std::vector<std::string> dirs;
    Search search;
    ReadSearch(fields, &search);
    Require(ReadBytes(digest, &source) && ReadPath(path, &where) && ReadBytes(headers, &memory) &&
            ReadEach(system, ReadPath, &dirs));
    return MakeText(culaunch::jit::IncludesKey(source, where, memory, search, dirs));
  });
}
