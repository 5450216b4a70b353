#include "triton/general/general_call.h"

#include <algorithm>

#include "python/call_arguments.h"
#include "python/free_threaded_lock.h"
#include "python/upcalls.h"
#include "triton/dispatchers/zeroes.h"
#include "triton/grids/grid.h"
#include "triton/quick/form.h"
#include "triton/values/describe.h"
#include "triton/variants/launch.h"

namespace triton {

namespace {

// The arguments of a call whose grid is known.
class BoundArguments final : public ArgumentsOfCall {
 public:
  BoundArguments(const State& state, Bound& bound) : state_(state), bound_(bound) {}

  PyObject* operator[](size_t i) const override {
    return bound_[i] != nullptr ? bound_[i] : state_.parameters[i].default_value.get();
  }

 private:
  const State& state_;
  Bound& bound_;
};

}  // namespace

PyObject* GeneralCall::Description() {
  if (!Bind() || !Specialize() || !FillDefaults()) return nullptr;
  return Describe().release();
}

PyObject* GeneralCall::Run() {
  if (mode_ == CallMode::kGuarded && !state_.guards.Hold()) return CallGuarded();
  if (!Bind() || !Specialize()) return nullptr;
  std::shared_ptr<const TunedChoice> choice;
  if (state_.is_tuned) {
    choice = FindChoice();
    if (choice == nullptr) return PyErr_Occurred() != nullptr ? nullptr : CallTuner();
    if (state_.last_choice != choice && !SetLastChoice(state_, choice)) return nullptr;
    if (!ApplyChoice(*choice)) return nullptr;
  }
  if (!FillDefaults() || !AddConstants()) return nullptr;
  if (!FindVariant()) return nullptr;
  if (variant_ == nullptr) Py_RETURN_NONE;
  uint32_t dims[3];
  if (dims_ == nullptr) {
    if (!FindGrid(dims)) return nullptr;
    dims_ = dims;
    if (variant_ == nullptr) Py_RETURN_NONE;
  }
  if (mode_ == CallMode::kResolve) return Resolved();
  bool is_quick = mode_ == CallMode::kGuarded && (choice == nullptr || !choice->has_hook);
  if (state_.sets_to_zero && !SetToZero(&is_quick)) return nullptr;
  if (variant_ == nullptr) Py_RETURN_NONE;
  if (is_quick) {
    Form::Learn(state_, args_, count_, keyword_names_,
                {variant_, choice, conversion_.ordinal, specializer_.key, shapes_});
  }
  ++*state_.launches;
  return LaunchVariant(*variant_, dims_, conversion_, specializer_, Object());
}

// Let a method in Python handle the whole call.
PyObject* GeneralCall::CallGuarded() {
  const Ref positional = PositionalTuple(args_, count_);
  const Ref keywords = KeywordDict(args_, count_, keyword_names_);
  if (!positional || !keywords) return nullptr;
  return PyObject_CallMethod(Object(), methods::kGuarded, "OOO", grid_, positional.get(),
                             keywords.get());
}

// The variant is kept here, because the table may drop it while Python or a launch runs. It is null
// if a Triton hook took over the compilation. False with a Python error set.
bool GeneralCall::FindVariant() {
  Ref found(LookUpVariant());
  if (!found) return false;
  kept_ = std::move(found);
  variant_ = kept_.get() != Py_None ? reinterpret_cast<VariantObject*>(kept_.get()) : nullptr;
  return true;
}

// Python sets the arrays that the driver cannot, which no quick call can do. Python may change the
// arrays, so they are read again. False with a Python error set.
bool GeneralCall::SetToZero(bool* is_quick) {
  const BoundArguments arguments(state_, bound_);
  const Zeroing zeroing =
      triton::SetToZero(state_, arguments, conversion_.ordinal, conversion_.stream);
  if (zeroing != Zeroing::kLeft) return zeroing == Zeroing::kDone;
  *is_quick = false;
  const Ref values = ArgumentDict(true);
  const Ref none(values ? PyObject_CallMethod(Object(), methods::kSetToZero, "O", values.get())
                        : nullptr);
  return none && ReadAgain();
}

// The grid function may have changed the tensors, for instance their storage.
bool GeneralCall::ReadAgain() {
  specializer_.Clear();
  return Specialize() && AddConstants() && FindVariant();
}

// A new reference, None if there is nothing to launch, or null with a Python error set.
PyObject* GeneralCall::LookUpVariant() {
  const uint64_t hash = specializer_.key.Hash();
  {
    const FreeThreadedLock lock(state_.mutex);
    PyObject** found = state_.variants.Find(specializer_.key, hash);
    if (found != nullptr) return Ref::Borrow(*found).release();
  }
  const Ref values = ArgumentDict(true);
  const Ref options(PyDict_New());
  const Ref description = Describe();
  if (!values || !options || !description) return nullptr;
  for (const Option& option : bound_.options) {
    if (PyDict_SetItem(options.get(), option.first, option.second) < 0) return nullptr;
  }
  Ref made(PyObject_CallMethod(Object(), methods::kMiss, "OOOi", values.get(), options.get(),
                               description.get(), conversion_.ordinal));
  if (!made) return nullptr;
  if (made.get() == Py_None) return made.release();
  if (PyObject_TypeCheck(made.get(), g_variant_type) == 0) {
    PyErr_SetString(PyExc_TypeError, "_miss must return a TritonVariant");
    return nullptr;
  }
  const FreeThreadedLock lock(state_.mutex);
  PyObject** other = state_.variants.Find(specializer_.key, hash);  // another thread's
  if (other != nullptr) return Ref::Borrow(*other).release();
  state_.variants.Add(specializer_.key, hash, Ref::Borrow(made.get()).release());
  return made.release();
}

// All arguments by name; without defaults if `with_defaults` is false.
Ref GeneralCall::ArgumentDict(bool with_defaults) {
  Ref dict(PyDict_New());
  for (size_t i = 0; dict && i < state_.count; ++i) {
    const Parameter& parameter = state_.parameters[i];
    PyObject* value = bound_[i];
    if (value == nullptr && with_defaults) value = parameter.default_value.get();
    if (value != nullptr && PyDict_SetItem(dict.get(), parameter.name.get(), value) < 0) {
      return Ref();
    }
  }
  return dict;
}

// [(type, key), ...] in Triton's words, one for each parameter.
Ref GeneralCall::Describe() {
  Ref list(PyList_New(0));
  size_t position = 0;
  for (size_t i = 0; list && i < state_.count; ++i) {
    const Parameter& parameter = state_.parameters[i];
    Ref item(parameter.is_constexpr
                 ? Py_BuildValue("sO", "constexpr", bound_[i] != nullptr ? bound_[i] : Py_None)
                 : DescribeWords(specializer_.key, &position, parameter, state_.interner));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return Ref();
  }
  return list;
}

// The result of the grid function, which is called unless the result is known. It may change the
// arguments, so they are read again.
bool GeneralCall::FindGrid(uint32_t* dims) {
  const BoundArguments arguments(state_, bound_);
  uint32_t known[3];
  const bool is_known = state_.grids.Find(grid_, arguments, known);
  if (is_known && state_.checks == 0) {
    std::copy(known, known + 3, dims);
    return true;
  }
  const Ref values = ArgumentDict(true);
  if (!values || !AskGrid(grid_, values.get(), variant_, state_.falls_back, dims)) return false;
  if (is_known) return IsSameGrid(grid_, known, dims) && ReadAgain();
  return state_.grids.Learn(Object(), grid_, arguments, dims) && ReadAgain();
}

PyObject* GeneralCall::Resolved() {
  const Ref values = ArgumentDict(true);
  if (!values) return nullptr;
  return Py_BuildValue("OiNO(III)", variant_, conversion_.ordinal,
                       PyLong_FromVoidPtr(conversion_.stream), values.get(), dims_[0], dims_[1],
                       dims_[2]);
}

}  // namespace triton
