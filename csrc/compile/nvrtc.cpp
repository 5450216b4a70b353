#include "compile/nvrtc.h"

#include <culaunch/jit/compiler.h>

#include <atomic>
#include <map>

#include "compile/library_errors.h"
#include "compile/signal_handlers.h"
#include "compile/signatures.h"
#include "compile/texts.h"

namespace {

using culaunch::jit::Compiler;
using culaunch::jit::Job;
using culaunch::jit::Wording;

// As Python's keywords are called.
constexpr Wording kPythonWording = {
    '\'', "pass its text in headers=, or its directory in include_dirs=",
    "name its directory in include_dirs=", "pass device_as_default_execution_space=True",
    "compile with backend='nvcc'"};

// An NVRTC with the functions of Python that it needs. These are called with the GIL.
class NvrtcOfPython {
 public:
  NvrtcOfPython(const std::string& path, PyObject* private_directory, PyObject* warn)
      : private_directory_(Ref::Borrow(private_directory)),
        warn_(Ref::Borrow(warn)),
        compiler_(path, {[this](const std::string& first, const std::string& second) {
                           return PrivateDirectory(first, second);
                         },
                         [this](const std::string& text) { Warn(text); }, kPythonWording}) {}

  Compiler& get() { return compiler_; }

  Compiler& Loaded() {
    compiler_.Load();
    // NVRTC up to 13.0 would end the process at a Ctrl-C.
    if (!keeps_signals_.exchange(true)) KeepSignalHandlersOf(compiler_.path());
    return compiler_;
  }

 private:
  std::string PrivateDirectory(const std::string& first, const std::string& second) const {
    const HoldGil gil;
    std::string path;
    const Ref answer(PyObject_CallFunctionObjArgs(private_directory_.get(),
                                                  Required(MakeText(first)).get(),
                                                  Required(MakeText(second)).get(), nullptr));
    Require(answer && ReadPath(answer.get(), &path));
    return path;
  }

  void Warn(const std::string& text) const {
    const HoldGil gil;
    Required(
        Ref(PyObject_CallFunctionObjArgs(warn_.get(), Required(MakeText(text)).get(), nullptr)));
  }

  Ref private_directory_, warn_;
  Compiler compiler_;
  std::atomic<bool> keeps_signals_{false};
};

void ReadTexts(PyObject* dict, std::map<std::string, std::string>* texts) {
  PyObject *name, *text;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &text) != 0;) {
    std::string key;
    Require(ReadBytes(name, &key) && ReadBytes(text, &(*texts)[key]));
  }
}

// The fields of culaunch._compile.backend.Job.
Job ReadJob(PyObject* fields) {
  PyObject *text, *name, *directory, *flags, *names, *dirs, *memory, *digest, *unknown, *missing;
  int system_files, lto, paths, pch;
  Require(PyArg_ParseTuple(fields, "OOOOOOO!OiOOppp:job", &text, &name, &directory, &flags, &names,
                           &dirs, &PyDict_Type, &memory, &digest, &system_files, &unknown, &missing,
                           &lto, &paths, &pch) != 0);
  Job job;
  Require(ReadBytes(text, &job.includes.text) && ReadBytes(name, &job.name) &&
          ReadEach(flags, ReadBytes, &job.flags) && ReadEach(names, ReadBytes, &job.names) &&
          ReadEach(dirs, ReadPath, &job.include_dirs) && ReadBytes(digest, &job.includes.digest) &&
          ReadBytes(unknown, &job.includes.unknown) &&
          ReadEach(missing, ReadBytes, &job.includes.missing));
  if (directory != Py_None) Require(ReadPath(directory, &job.directory.emplace()));
  std::map<std::string, std::string> texts;
  ReadTexts(memory, &texts);
  for (auto& one : texts) job.includes.memory.emplace_back(one.first, std::move(one.second));
  job.includes.system_files = static_cast<size_t>(system_files);
  job.lto = lto != 0;
  job.shows_paths = paths != 0;
  job.pch = pch != 0;
  return job;
}

Ref MakePart(const Compiler::Part& part) {
  const Ref names = Required(Ref(PyDict_New()));
  for (const auto& [name, lowered] : part.names) {
    Require(PyDict_SetItem(names.get(), Required(MakeText(name)).get(),
                           Required(MakeText(lowered)).get()) == 0);
  }
  const Ref signatures = Required(MakeSignatures(part.signatures));
  const std::string& data = part.compiled.data;
  const Ref bytes =
      Required(Ref(PyBytes_FromStringAndSize(data.data(), static_cast<Py_ssize_t>(data.size()))));
  return Ref(Py_BuildValue("(sOOON)", part.compiled.KindName(), bytes.get(), names.get(),
                           signatures.get(), Required(MakeText(part.log)).release()));
}

}  // namespace

PyObject* OpenNvrtc(PyObject*, PyObject* args) {
  PyObject *path, *private_directory, *warn;
  if (!PyArg_ParseTuple(args, "OOO:open_nvrtc", &path, &private_directory, &warn)) return nullptr;
  return GuardedLibrary([&] {
    std::string where;
    Require(ReadPath(path, &where));
    return InCapsule(new NvrtcOfPython(where, private_directory, warn));
  });
}

PyObject* NvrtcPlace(PyObject*, PyObject* nvrtc) {
  return GuardedLibrary([&] {
    Compiler& compiler = OfCapsule<NvrtcOfPython>(nvrtc).get();
    return Ref(Py_BuildValue("(NN)", Required(MakePath(compiler.path())).release(),
                             Required(MakeText(compiler.Identity())).release()));
  });
}

PyObject* NvrtcVersion(PyObject*, PyObject* nvrtc) {
  return GuardedLibrary([&] {
    NvrtcOfPython& own = OfCapsule<NvrtcOfPython>(nvrtc);
    const auto [version, archs] = Apart([&] {
      Compiler& compiler = own.Loaded();
      return std::make_pair(compiler.Version(), compiler.SupportedArchs());
    });
    return Ref(Py_BuildValue("(NN)", Required(MakeText(version)).release(),
                             Required(MakeTuple(archs, [](int number) {
                               return Ref(PyLong_FromLong(number));
                             })).release()));
  });
}

PyObject* NvrtcHeaders(PyObject*, PyObject* nvrtc) {
  return GuardedLibrary([&] {
    Compiler& compiler = OfCapsule<NvrtcOfPython>(nvrtc).get();
    const auto& found = *Apart([&] { return &compiler.Toolkit(); });
    return Ref(Py_BuildValue("(NN)", Required(MakeTuple(found.dirs, MakePath)).release(),
                             Required(MakeTuple(found.notes, MakeText)).release()));
  });
}

PyObject* NvrtcCompile(PyObject*, PyObject* args) {
  PyObject *nvrtc, *fields, *arch;
  if (!PyArg_ParseTuple(args, "OO!O:nvrtc_compile", &nvrtc, &PyTuple_Type, &fields, &arch)) {
    return nullptr;
  }
  return GuardedLibrary([&] {
    NvrtcOfPython& own = OfCapsule<NvrtcOfPython>(nvrtc);
    const Job job = ReadJob(fields);
    std::string name;
    Require(ReadBytes(arch, &name));
    return MakePart(Apart([&] { return own.Loaded().Compile(job, name); }));
  });
}

PyObject* ExplainFailure(PyObject*, PyObject* args) {
  PyObject *log, *compiler, *flags, *sources, *notes, *find;
  if (!PyArg_ParseTuple(args, "OOOO!OO:explain_failure", &log, &compiler, &flags, &PyDict_Type,
                        &sources, &notes, &find)) {
    return nullptr;
  }
  return Guarded([&] {
    culaunch::jit::FailedCompile failed;
    Require(ReadBytes(log, &failed.log) && ReadBytes(compiler, &failed.compiler) &&
            ReadEach(flags, ReadBytes, &failed.flags) && ReadEach(notes, ReadBytes, &failed.notes));
    ReadTexts(sources, &failed.sources);
    failed.wording = kPythonWording;
    failed.find = [&](const std::string& name) {
      std::string path;
      const Ref answer = Required(
          Ref(PyObject_CallFunctionObjArgs(find, Required(MakeText(name)).get(), nullptr)));
      Require(answer.get() == Py_None || ReadPath(answer.get(), &path));
      return path;
    };
    return MakeText(culaunch::jit::Diagnosis(failed).Error().what());
  });
}
