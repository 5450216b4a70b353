// culaunch._core: the native half of the launch path.
#include <culaunch/version.h>

#include <string_view>

#include "arguments/array_info.h"
#include "arguments/device_array/device_array.h"
#include "arguments/device_array/exchange.h"
#include "arguments/torch/modes.h"
#include "arguments/torch/tensor.h"
#include "arguments/torch/tensor_versions.h"
#include "arguments/types/rules.h"
#include "compile/cached.h"
#include "compile/linking.h"
#include "compile/nvrtc.h"
#include "compile/options.h"
#include "compile/signal_handlers.h"
#include "compile/signatures.h"
#include "compile/sources.h"
#include "driver/driver_calls.h"
#include "driver/driver_in_use.h"
#include "driver/driver_object.h"
#include "driver/python_function.h"
#include "elementwise/function.h"
#include "extension/exported_numbers.h"
#include "formats/mangled_names.h"
#include "function/function_type.h"
#include "function/program/program_object.h"
#include "graph/graph_object.h"
#include "launch/kernel_type.h"
#include "launch/launcher.h"
#include "launch/module_object.h"
#include "profile/profile_calls.h"
#include "python/answers.h"
#include "python/dict_watch.h"
#include "python/followed_calls.h"
#include "python/function_parts.h"
#include "python/numbers.h"
#include "python/python.h"
#include "python/recording.h"
#include "python/upcalls.h"
#include "torch/interface.h"
#include "torch/operator.h"
#include "torch/operator_object.h"
#include "torch/plain_calls.h"
#include "triton/grids/fallback.h"
#include "triton/objects/dispatcher.h"
#include "triton/objects/launcher.h"
#include "triton/objects/subscript.h"
#include "triton/quick/form.h"
#include "triton/variants/variant.h"
#include "xla/array.h"
#include "xla/handler.h"

#define CULAUNCH_TEXT_OF(token) #token
#define CULAUNCH_TEXT(token) CULAUNCH_TEXT_OF(token)

namespace {

constexpr char kVersion[] = CULAUNCH_TEXT(CULAUNCH_VERSION_MAJOR) "." CULAUNCH_TEXT(
    CULAUNCH_VERSION_MINOR) "." CULAUNCH_TEXT(CULAUNCH_VERSION_PATCH);

// use_shortcut(name, use): turn on or off a shortcut that relies on more than the stable ABI
// promises. Benchmarks measure what each saves, and tests compare the results with and without it.
// Do not use it while other threads call.
PyObject* UseShortcut(PyObject*, PyObject* args) {
  const char* name = nullptr;
  int use = 0;
  if (!PyArg_ParseTuple(args, "sp:use_shortcut", &name, &use)) return nullptr;
  const std::string_view wanted = name;
  if (wanted == "numbers") {
    UseNumbers(use != 0);
  } else if (wanted == "dicts") {
    g_dicts_are_watched = use != 0;
  } else if (wanted == "torch") {
    UseTorchBits(use != 0);
  } else if (wanted == "places") {
    ReadTorchInPlace(use != 0);
  } else if (wanted == "functions") {
    UseFunctionParts(use != 0);
  } else if (wanted == "forms") {
    triton::Form::UseLearning(use != 0);
  } else {
    PyErr_Format(PyExc_ValueError, "there is no shortcut %s", name);
    return nullptr;
  }
  Py_RETURN_NONE;
}

// try_numbers(version) -> whether ints and floats are read in place from now on. The test runs as
// on an interpreter of that version (0: this one). Tests use it for versions that are not
// installed.
PyObject* TryNumbersAgain(PyObject*, PyObject* args) {
  unsigned long version = 0;
  if (!PyArg_ParseTuple(args, "k:try_numbers", &version)) return nullptr;
  return PyBool_FromLong(TryNumbers(version));
}

int Execute(PyObject* module) {
  TryNumbers(0);
  return PyModule_AddStringConstant(module, "__version__", kVersion) == 0 &&
                 PyModule_AddIntConstant(module, "reads_numbers_in_place", g_numbers_are_known) ==
                     0 &&
                 AddNumbers(module) == 0 && AddLaunchOptions(module) == 0 &&
                 AddDriverType(module) == 0 && AddDriverCalls() == 0 &&
                 AddDriverFunctionType(module) == 0 && AddModuleType(module) == 0 &&
                 AddKernelType(module) == 0 && AddLauncherType(module) == 0 &&
                 graph::AddNodeType(module) == 0 && graph::AddGraphType(module) == 0 &&
                 AddDeviceArrayType(module) == 0 && AddDeviceArrayExchange() == 0 &&
                 AddElementwiseType(module) == 0 && triton::AddVariantType(module) == 0 &&
                 triton::AddDispatcherType(module) == 0 && triton::AddLauncherType(module) == 0 &&
                 triton::AddSubscriptType(module) == 0 && triton::AddTritonFallback(module) == 0 &&
                 function::AddProgramType(module) == 0 && function::AddFunctionType(module) == 0 &&
                 torch_operators::AddOperatorType(module) == 0 &&
                 xla_calls::AddArrayType(module) == 0
             ? 0
             : -1;
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(Execute)},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, nullptr},
};

PyMethodDef functions[] = {
    {"array_info", ArrayInfo, METH_VARARGS, nullptr},
    {"reads_in_place", ReadsInPlace, METH_O, nullptr},
    {"array_stream", ArrayStreamOf, METH_VARARGS, nullptr},
    {"current_stream", GetCurrentStream, METH_VARARGS, nullptr},
    {"set_current_stream", SetCurrentStream, METH_VARARGS, nullptr},
    {"current_driver", CurrentDriverObject, METH_NOARGS, nullptr},
    {"note_driver", NoteDriver, METH_VARARGS, nullptr},
    {"set_upcalls", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(SetUpcalls)),
     METH_VARARGS | METH_KEYWORDS, nullptr},
    {"argument_rules", ArgumentRules, METH_NOARGS, nullptr},
    {"use_shortcut", UseShortcut, METH_VARARGS, nullptr},
    {"try_numbers", TryNumbersAgain, METH_VARARGS, nullptr},
    {"demangle", DemangleName, METH_O, kDemangleDoc},
    {"mangled_param_types", MangledParamTypes, METH_O, kMangledParamTypesDoc},
    {"follow", FollowSource, METH_VARARGS, nullptr},
    {"look_at", LookAt, METH_O, nullptr},
    {"source_facts", SourceFacts, METH_O, nullptr},
    {"cache_contents", ListCache, METH_O, nullptr},
    {"evict", EvictFromCache, METH_VARARGS, nullptr},
    {"clear_cache", ClearCache, METH_O, nullptr},
    {"remove_library", RemoveCachedLibrary, METH_VARARGS, nullptr},
    {"normal_options", NormalizeOptions, METH_VARARGS, nullptr},
    {"why_refused", WhyOptionIsRefused, METH_O, nullptr},
    {"kernel_signatures", KernelSignatures, METH_VARARGS, nullptr},
    {"keep_signal_handlers", KeepSignalHandlers, METH_O, nullptr},
    {"open_nvrtc", OpenNvrtc, METH_VARARGS, nullptr},
    {"nvrtc_place", NvrtcPlace, METH_O, nullptr},
    {"nvrtc_version", NvrtcVersion, METH_O, nullptr},
    {"nvrtc_headers", NvrtcHeaders, METH_O, nullptr},
    {"nvrtc_compile", NvrtcCompile, METH_VARARGS, nullptr},
    {"explain_failure", ExplainFailure, METH_VARARGS, nullptr},
    {"set_pip_folders", SetPipFolders, METH_O, nullptr},
    {"open_nvjitlink", OpenNvJitLink, METH_NOARGS, nullptr},
    {"link_images", LinkImages, METH_VARARGS, nullptr},
    {"library_place", LibraryPlace, METH_O, nullptr},
    {"combine_images", CombineImages, METH_VARARGS, nullptr},
    {"cache_key", ImageKey, METH_VARARGS, nullptr},
    {"includes_key", SourceIncludesKey, METH_VARARGS, nullptr},
    {"program_format", function::ProgramFormat, METH_NOARGS, nullptr},
    {"count_bodies", CountBodies, METH_VARARGS, nullptr},
    {"open_frames", OpenFrames, METH_VARARGS, nullptr},
    {"follow_calls", FollowCalls, METH_O, nullptr},
    {"asking", MakeAsking, METH_VARARGS, nullptr},
    {"asking_import", MakeAskingImport, METH_VARARGS, nullptr},
    {"around_collection", AroundCollection, METH_VARARGS, nullptr},
    {"begin_capture", graph::BeginCapture, METH_VARARGS, nullptr},
    {"end_capture", graph::EndCapture, METH_VARARGS, nullptr},
    {"take_copy", graph::TakeCopy, METH_VARARGS, nullptr},
    {"take_host", graph::TakeHost, METH_VARARGS, nullptr},
    {"take_child", graph::TakeChild, METH_VARARGS, nullptr},
    {"take_empty", graph::TakeEmpty, METH_VARARGS, nullptr},
    {"take_conditional", graph::TakeConditional, METH_VARARGS, nullptr},
    {"start_profile", profile::StartProfile, METH_VARARGS, nullptr},
    {"start_device_kernels", profile::StartDeviceKernels, METH_NOARGS, nullptr},
    {"stop_device_kernels", profile::StopDeviceKernels, METH_O, nullptr},
    {"stop_profile", profile::StopProfile, METH_VARARGS, nullptr},
    {"open_torch", torch_operators::OpenTorch, METH_VARARGS, nullptr},
    {"open_versions", OpenVersions, METH_VARARGS, nullptr},
    {"open_plain_calls", torch_operators::OpenPlainCalls, METH_VARARGS, nullptr},
    {"thread_keys", ThreadKeys, METH_NOARGS, nullptr},
    {"watch_modes", WatchModes, METH_VARARGS, nullptr},
    {"bind_operator", torch_operators::BindOperator, METH_VARARGS, nullptr},
    {"rebind_operator", torch_operators::RebindOperator, METH_VARARGS, nullptr},
    {"xla_handler", xla_calls::Handler, METH_VARARGS, nullptr},
    {"end_xla_calls", xla_calls::EndCalls, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "culaunch._core",
                          "The native half of the launch path.",
                          0,
                          functions,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&definition); }
