#include "compile/linking.h"

#include <culaunch/jit/linker.h>

#include "compile/library_errors.h"
#include "compile/texts.h"

namespace {

using culaunch::jit::CompiledPart;
using culaunch::jit::Linker;
using culaunch::jit::LinkPart;

std::string BytesOf(PyObject* bytes) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  Require(PyBytes_AsStringAndSize(bytes, &data, &size) == 0);
  return std::string(data, static_cast<size_t>(size));
}

Ref MakeBytes(const std::string& data) {
  return Ref(PyBytes_FromStringAndSize(data.data(), static_cast<Py_ssize_t>(data.size())));
}

// Call read(item) for each item of a sequence.
template <class Read>
void ForEach(PyObject* items, const Read& read) {
  const Ref list = Required(Ref(PySequence_List(items)));
  for (Py_ssize_t i = 0; i < PyList_Size(list.get()); ++i) read(PyList_GetItem(list.get(), i));
}

}  // namespace

PyObject* SetPipFolders(PyObject*, PyObject* folders) {
  return Guarded([&] {
    std::vector<std::string> paths;
    Require(ReadEach(folders, ReadPath, &paths));
    culaunch::jit::ChosenPipFolders::Set(std::move(paths));
    return Ref::Borrow(Py_None);
  });
}

PyObject* OpenNvJitLink(PyObject*, PyObject*) {
  return GuardedLibrary([&] {
    auto linker = std::make_unique<Linker>("", std::vector<std::string>());
    const Ref identity = Required(MakeText(linker->identity()));
    return Ref(PyTuple_Pack(2, Required(InCapsule(linker.release())).get(), identity.get()));
  });
}

PyObject* LinkImages(PyObject*, PyObject* args) {
  PyObject *nvjitlink, *inputs, *arch, *options;
  if (!PyArg_ParseTuple(args, "OOOO:link_images", &nvjitlink, &inputs, &arch, &options)) {
    return nullptr;
  }
  return GuardedLibrary([&] {
    const Linker& linker = OfCapsule<Linker>(nvjitlink);
    std::vector<LinkPart> parts;
    ForEach(inputs, [&](PyObject* item) {
      PyObject *kind, *data, *where;
      Require(PyArg_ParseTuple(item, "OOO:input", &kind, &data, &where) != 0);
      LinkPart part;
      std::string name;
      Require(ReadBytes(kind, &name) && ReadBytes(where, &part.where));
      part.kind = culaunch::jit::LinkKindOf(name);
      part.image.data = BytesOf(data);
      parts.push_back(std::move(part));
    });
    std::string target, log;
    std::vector<std::string> words;
    Require(ReadBytes(arch, &target) && ReadEach(options, ReadBytes, &words));
    const CompiledPart made = Apart([&] {
      culaunch::jit::CheckDuplicates(parts);
      return linker.Link(parts, target, words, &log);
    });
    return Ref(
        PyTuple_Pack(2, Required(MakeBytes(made.data)).get(), Required(MakeText(log)).get()));
  });
}

PyObject* CombineImages(PyObject*, PyObject* args) {
  PyObject *items, *identifier;
  if (!PyArg_ParseTuple(args, "OO:combine_images", &items, &identifier)) return nullptr;
  return GuardedLibrary([&] {
    std::vector<CompiledPart> parts;
    ForEach(items, [&](PyObject* item) {
      PyObject *kind, *arch, *data;
      Require(PyArg_ParseTuple(item, "OOO:part", &kind, &arch, &data) != 0);
      CompiledPart part;
      std::string name;
      Require(ReadBytes(kind, &name) && ReadBytes(arch, &part.arch));
      part.kind = CompiledPart::KindOf(name);
      part.data = BytesOf(data);
      parts.push_back(std::move(part));
    });
    std::string name;
    Require(ReadBytes(identifier, &name));
    return MakeBytes(Apart([&] { return culaunch::jit::CombineParts(parts, name, {}); }));
  });
}

PyObject* LibraryPlace(PyObject*, PyObject* title) {
  return GuardedLibrary([&] {
    std::string name;
    Require(ReadBytes(title, &name));
    const auto [version, path] = Apart([&] {
      culaunch::jit::SharedCudaLibrary library(
          name == "nvFatbin" ? culaunch::jit::NvFatbinLibrary() : culaunch::jit::NvJitLinkLibrary(),
          "");
      unsigned major = 0;
      unsigned minor = 0;
      library.Require<int(unsigned*, unsigned*)>((name + "Version").c_str())(&major, &minor);
      return std::make_pair(std::to_string(major) + "." + std::to_string(minor), library.path());
    });
    return Ref(PyTuple_Pack(2, Required(MakeText(version)).get(), Required(MakePath(path)).get()));
  });
}
