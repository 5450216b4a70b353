// The parts of Python that the extension uses: the functions and methods of culaunch's Python half
// that it calls, and the modules that it imports. All of them are listed here. No other file of
// csrc names one, which a test checks.
#pragma once

#include "python/python.h"

// The parts of the package are above the extension, which therefore does not import them. When a
// part is imported, it passes an object with its functions to _core.set_upcalls. _core.pyi has a
// Protocol for every part, with the types of the functions.
//
// The columns: the name in C++, the part, its name there.
#define CULAUNCH_UPCALLS(UPCALL)                                 \
  UPCALL(kRaiseArgument, "launch", "raise_argument")             \
  UPCALL(kRaiseCount, "launch", "raise_count")                   \
  UPCALL(kSpell, "launch", "spell")                              \
  UPCALL(kStreamHandle, "launch", "stream_handle")               \
  UPCALL(kChooseDriver, "launch", "choose_driver")               \
  UPCALL(kAllocateArray, "launch", "allocate_array")             \
  UPCALL(kAdoptArray, "launch", "adopt_array")                   \
  UPCALL(kFindTorchBits, "launch", "find_bits")                  \
  UPCALL(kFindTorchLayout, "launch", "find_layout")              \
  UPCALL(kIsLazy, "launch", "is_lazy")                           \
  UPCALL(kRefusal, "launch", "refusal")                          \
  UPCALL(kCheckGradient, "launch", "check_gradient")             \
  UPCALL(kAllocateLike, "launch", "allocate_like")               \
  UPCALL(kFinishAllocation, "launch", "finish_allocation")       \
  UPCALL(kRaiseTritonBinding, "triton", "raise_binding")         \
  UPCALL(kRaiseTritonArgument, "triton", "raise_argument")       \
  UPCALL(kClassifyTritonObject, "triton", "classify")            \
  UPCALL(kTritonConstant, "triton", "constant")                  \
  UPCALL(kDescribeTritonConstant, "triton", "describe_constant") \
  UPCALL(kReadTritonTensor, "triton", "read_tensor")             \
  UPCALL(kViewOf, "launch", "view_of")                           \
  UPCALL(kMemoryOfTritonTensor, "triton", "memory_of")           \
  UPCALL(kRecord, "function", "record")                          \
  UPCALL(kFollowedCode, "function", "followed_code")             \
  UPCALL(kFollowedBuiltins, "function", "followed_builtins")     \
  UPCALL(kIsSame, "function", "is_same")                         \
  UPCALL(kAroundCollection, "function", "around_collection")     \
  UPCALL(kResolveXlaCall, "jax", "resolve")

enum class Upcall {
#define CULAUNCH_UPCALL(upcall, part, name) upcall,
  CULAUNCH_UPCALLS(CULAUNCH_UPCALL)
#undef CULAUNCH_UPCALL
};

// The function, borrowed and never freed. Null with a Python error set if its part is not imported.
PyObject* FunctionOf(Upcall upcall);

// Call it with arguments in the format of Py_BuildValue. Put a single argument in parentheses. Null
// with a Python error set.
template <class... Arguments>
Ref CallUp(Upcall upcall, const char* format = nullptr, Arguments... arguments) {
  PyObject* function = FunctionOf(upcall);
  return Ref(function != nullptr ? PyObject_CallFunction(function, format, arguments...) : nullptr);
}

// set_upcalls(*, part=object with the functions of the part).
PyObject* SetUpcalls(PyObject* self, PyObject* args, PyObject* keywords);

// The methods that a subclass in Python must have, because the extension calls them.
namespace methods {
// Of TritonDispatcher: the Protocol is _core.DispatcherMethods.
inline constexpr char kPrepare[] = "_prepare";
inline constexpr char kGuarded[] = "_guarded";
inline constexpr char kMiss[] = "_miss";
inline constexpr char kTune[] = "_tune";
inline constexpr char kRunHook[] = "_run_hook";
inline constexpr char kSetToZero[] = "_set_to_zero";
inline constexpr char kFallBack[] = "_fall_back";
inline constexpr char kChose[] = "_chose";
inline constexpr char kCompare[] = "_compare";
inline constexpr char kReadGrid[] = "_read_grid";
inline constexpr char kAllocate[] = "_allocate";
// Of Elementwise: the Protocol is _core.ElementwiseMethods.
inline constexpr char kSpecialize[] = "_specialize";
inline constexpr char kMakeKernel[] = "_make_kernel";
inline constexpr char kCallSlowly[] = "_call_slowly";
inline constexpr char kRunsInPlace[] = "_runs_in_place";
// Of Function: the Protocol is _core.FunctionMethods.
inline constexpr char kTrace[] = "_trace";
inline constexpr char kFail[] = "_fail";
inline constexpr char kRefused[] = "_refused";
}  // namespace methods

// The modules that the extension imports when it needs them: other packages' modules, and the one
// module of culaunch that is below it.
namespace modules {
inline constexpr char kErrors[] = "culaunch._errors";
inline constexpr char kThreading[] = "threading";
inline constexpr char kCtypes[] = "ctypes";
inline constexpr char kMath[] = "math";
inline constexpr char kOperator[] = "operator";
inline constexpr char kNumpy[] = "numpy";
inline constexpr char kCupyCuda[] = "cupy.cuda";
inline constexpr char kTorch[] = "torch";  // if it is imported already
}  // namespace modules

inline Ref Import(const char* module) { return Ref(PyImport_ImportModule(module)); }

// Null if it is not imported.
inline Ref Imported(const char* module) {
  const Ref name(PyUnicode_FromString(module));
  return Ref(name ? PyImport_GetModule(name.get()) : nullptr);
}
