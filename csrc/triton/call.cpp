#include "triton/call.h"

#include <culaunch/guard.h>

#include <algorithm>

#include "driver/driver_object.h"
#include "driver/errors.h"
#include "python/call_arguments.h"
#include "python/free_threaded_lock.h"
#include "python/upcalls.h"
#include "triton/bound.h"
#include "triton/describe.h"
#include "triton/form.h"
#include "triton/grid.h"
#include "triton/launch.h"
#include "triton/tritons_way.h"

namespace triton {

namespace {

// Whether a value says everything by itself.
bool IsNumber(PyObject* object) {
  return PyLong_CheckExact(object) != 0 || PyBool_Check(object) != 0 || object == Py_None ||
         PyFloat_CheckExact(object) != 0 || PyUnicode_CheckExact(object) != 0;
}

// One call that goes the general way: bind, specialise, look up, launch.
class OneCall {
 public:
  OneCall(DispatcherObject* self, PyObject* grid, const uint32_t* dims, PyObject* const* args,
          size_t count, PyObject* keyword_names, CallMode mode)
      : self_(self),
        state_(*self->state),
        grid_(grid),
        dims_(dims),
        args_(args),
        count_(count),
        keyword_names_(keyword_names),
        mode_(mode),
        conversion_(*state_.table),
        specializer_(conversion_, state_.interner),
        bound_(state_.count) {}

  // The arguments in Triton's words.
  PyObject* Description() {
    if (!Bind() || !Specialize() || !FillDefaults()) return nullptr;
    return Describe().release();
  }

  PyObject* Run() {
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
      if (!AskGrid(dims) || !ReadAgain()) return nullptr;
      dims_ = dims;
      if (variant_ == nullptr) Py_RETURN_NONE;
    }
    if (mode_ == CallMode::kResolve) return Resolved();
    if (mode_ == CallMode::kGuarded && (choice == nullptr || !choice->has_hook)) {
      Form::Learn(state_, args_, count_, keyword_names_,
                  {variant_, choice, conversion_.ordinal, specializer_.key});
    }
    ++*state_.launches;
    return LaunchVariant(*variant_, dims_, conversion_, specializer_, Object());
  }

 private:
  // ---- before anything else

  // Let a method in Python handle the whole call.
  PyObject* CallGuarded() {
    const Ref positional = PositionalTuple(args_, count_);
    const Ref keywords = KeywordDict(args_, count_, keyword_names_);
    if (!positional || !keywords) return nullptr;
    return PyObject_CallMethod(Object(), methods::kGuarded, "OOO", grid_, positional.get(),
                               keywords.get());
  }

  // ---- binding

  bool Bind() {
    if (count_ > state_.count) return RaiseBinding("too_many", Py_None);
    for (size_t i = 0; i < count_; ++i) bound_[i] = args_[i];
    if (keyword_names_ == nullptr) return true;
    const auto size = static_cast<size_t>(PyTuple_Size(keyword_names_));
    for (size_t i = 0; i < size; ++i) {
      PyObject* name = PyTuple_GetItem(keyword_names_, static_cast<Py_ssize_t>(i));
      const int target = FindParameter(state_.parameters.get(), state_.count, name);
      PyObject* value = args_[count_ + i];
      if (target < 0) {
        bound_.options.emplace_back(name, value);
      } else if (bound_[static_cast<size_t>(target)] != nullptr) {
        return RaiseBinding("twice", name);
      } else {
        bound_[static_cast<size_t>(target)] = value;
      }
    }
    return true;
  }

  bool FillDefaults() {
    for (const size_t i : state_.constants) {
      if (bound_[i] != nullptr) continue;
      const Parameter& parameter = state_.parameters[i];
      bound_[i] = parameter.default_value.get();
      if (bound_[i] == nullptr && !parameter.is_optional) {
        return RaiseBinding("missing", parameter.name.get());
      }
    }
    return true;
  }

  bool RaiseBinding(const char* what, PyObject* name) {
    CallUp(Upcall::kRaiseTritonBinding, "OsOn", Object(), what, name,
           static_cast<Py_ssize_t>(count_));
    if (state_.falls_back) GoTritonsWay();
    return false;
  }

  // ---- the key

  bool Specialize() {
    for (const size_t i : state_.runtime) {
      Parameter& parameter = state_.parameters[i];
      PyObject* object = bound_[i];
      if (object == nullptr) object = parameter.default_value.get();
      if (object == nullptr) {
        if (!parameter.is_optional || is_chosen_) {
          return RaiseBinding("missing", parameter.name.get());
        }
        specializer_.key.Add(MakeWord(WordKind::kMissing));  // it is chosen later
        specializer_.leaves.Add(0);
        continue;
      }
      const Fault fault = specializer_.Add(parameter, object);
      if (fault != Fault::kNone) return RaiseArgument(fault, i, object);
    }
    return true;
  }

  bool RaiseArgument(Fault fault, size_t index, PyObject* object) {
    if (fault == Fault::kPython) return false;
    CallUp(Upcall::kRaiseTritonArgument, "OnOsLi", Object(), static_cast<Py_ssize_t>(index), object,
           FaultName(fault), conversion_.detail, conversion_.has_array ? conversion_.ordinal : -1);
    if (state_.falls_back) GoTritonsWay();
    return false;
  }

  bool AddConstants() {
    for (const size_t i : state_.constants) {
      Parameter& parameter = state_.parameters[i];
      if (bound_[i] == nullptr) {
        specializer_.key.Add(MakeWord(WordKind::kMissing));
        continue;
      }
      const Fault fault = specializer_.AddConstant(&parameter, bound_[i]);
      if (fault != Fault::kNone) return RaiseArgument(fault, i, bound_[i]);
    }
    for (const Option& option : bound_.options) {
      uint64_t number = 0;
      bool is_immutable = false;
      if (!state_.interner.Number(option.first, &number, &is_immutable)) return false;
      specializer_.key.Add(MakeWord(WordKind::kOption, number));
      if (specializer_.AddConstant(nullptr, option.second) != Fault::kNone) return false;
    }
    uint64_t target = 0;
    if (!FindTarget(&target)) return false;
    specializer_.key.Add(MakeWord(WordKind::kTarget, target));
    return true;
  }

  // The architecture of the call's device; without arrays that is the current one.
  bool FindTarget(uint64_t* target) {
    if (conversion_.ordinal < 0) {
      conversion_.ordinal = culaunch::CurrentDevice(*state_.table);
      if (!conversion_.stream_known && state_.fallback != nullptr) {
        void* stream = nullptr;
        if (state_.fallback->current_work_stream(culaunch::kDLCUDA, conversion_.ordinal, &stream) !=
            0) {
          return false;
        }
        conversion_.stream = static_cast<CUstream>(stream);
      }
    }
    const auto ordinal = static_cast<size_t>(conversion_.ordinal);
    *target = static_cast<uint64_t>(ordinal < state_.targets.size() ? state_.targets[ordinal] : 0);
    return true;
  }

  // ---- the tuned configuration

  std::shared_ptr<const TunedChoice> FindChoice() {
    Words& key = tuning_key_;
    for (const KeyPart& part : state_.tuning_key) {
      PyObject* object = bound_[part.parameter];
      if (object == nullptr) {
        key.Add(MakeWord(WordKind::kUnset));
        continue;
      }
      if (part.kind == KeyKind::kNone) {
        key.Add(MakeWord(object == Py_None ? WordKind::kNone : WordKind::kOne));
        continue;
      }
      if (part.kind == KeyKind::kNumber && !IsNumber(object)) {
        is_key_known_ = false;  // what it says may change with more than its value
        return nullptr;
      }
      if (part.kind == KeyKind::kType) object = reinterpret_cast<PyObject*>(Py_TYPE(object));
      Specializer words(conversion_, state_.interner);
      if (words.AddConstant(nullptr, object) != Fault::kNone) return nullptr;
      for (size_t i = 0; i < words.key.size(); ++i) key.Add(words.key[i]);
    }
    // The element types of the tensors, in the order of the parameters.
    const Words& all = specializer_.key;
    for (size_t i = 0; i < all.size(); ++i) {
      const WordKind kind = KindOf(all[i]);
      if (kind == WordKind::kDescriptor) {
        i += PayloadOf(all[i]) & 0xff;  // its block: a hook may still set it
      } else if (kind == WordKind::kTensor || kind == WordKind::kNamed) {
        key.Add(MakeWord(kind, PayloadOf(all[i])));
      } else {
        key.Add(MakeWord(WordKind::kNone));
      }
    }
    // What is best on one architecture need not even run on another.
    uint64_t target = 0;
    if (!FindTarget(&target)) return nullptr;
    key.Add(MakeWord(WordKind::kTarget, target));
    const FreeThreadedLock lock(state_.mutex);
    const std::shared_ptr<const TunedChoice>* choice = state_.choices.Find(key, key.Hash());
    return choice != nullptr ? *choice : nullptr;
  }

  // The autotuner runs in Python, launches once itself, and says what it chose.
  PyObject* CallTuner() {
    const Ref positional = PositionalTuple(args_, count_);
    const Ref keywords = KeywordDict(args_, count_, keyword_names_);
    if (!positional || !keywords) return nullptr;
    const Ref tuned(PyObject_CallMethod(Object(), methods::kTune, "OOOi", grid_, positional.get(),
                                        keywords.get(), conversion_.ordinal));
    if (!tuned) return nullptr;
    PyObject* result = nullptr;
    bool is_kept = false;
    std::shared_ptr<const TunedChoice> choice =
        TunedChoice::Read(state_.parameters.get(), state_.count, tuned.get(), &result, &is_kept);
    if (choice == nullptr) return nullptr;
    if (!is_kept || !is_key_known_) {
      state_.last_choice = std::move(choice);
    } else {
      const FreeThreadedLock lock(state_.mutex);
      const uint64_t hash = tuning_key_.Hash();
      if (state_.choices.Find(tuning_key_, hash) == nullptr) {
        state_.choices.Add(tuning_key_, hash, std::move(choice));
      }
      state_.last_choice = *state_.choices.Find(tuning_key_, hash);
    }
    return Ref::Borrow(result).release();
  }

  bool ApplyChoice(const TunedChoice& choice) {
    is_chosen_ = true;
    for (const auto& one : choice.constants) {
      PyObject* name = state_.parameters[one.name].name.get();
      if (bound_[one.name] != nullptr && !one.replaces) return RaiseBinding("tuned", name);
      if (one.name < count_) return RaiseBinding("twice", name);
      bound_[one.name] = one.value.get();
    }
    for (const auto& one : choice.options) {
      const auto given =
          std::find_if(bound_.options.begin(), bound_.options.end(), [&](const Option& option) {
            return PyUnicode_Compare(option.first, one.name.get()) == 0;
          });
      if (given == bound_.options.end()) {
        bound_.options.emplace_back(one.name.get(), one.value.get());
      } else if (one.replaces) {
        given->second = one.value.get();
      } else {
        return RaiseBinding("tuned", one.name.get());
      }
    }
    if (!choice.has_hook && !state_.chooses_arguments) return true;
    if (choice.has_hook && !RunHook(choice)) return false;
    specializer_.Clear();
    return Specialize();
  }

  bool RunHook(const TunedChoice& choice) {
    // It may change what the arguments are (a descriptor's block): they are read again.
    const Ref values = ArgumentDict(false);
    if (!values) return false;
    for (const auto& one : choice.options) {
      if (PyDict_SetItem(values.get(), one.name.get(), one.value.get()) < 0) return false;
    }
    const Ref none(
        PyObject_CallMethod(Object(), methods::kRunHook, "OO", choice.config.get(), values.get()));
    return static_cast<bool>(none);
  }

  // ---- the variant

  // The variant is kept here: the table may forget it while Python or a launch runs. It is null
  // where a hook of Triton's took the compilation over. False with a Python error set.
  bool FindVariant() {
    Ref found(LookUpVariant());
    if (!found) return false;
    kept_ = std::move(found);
    variant_ = kept_.get() != Py_None ? reinterpret_cast<VariantObject*>(kept_.get()) : nullptr;
    return true;
  }

  // A function that was asked for the grid may have changed what the tensors are: given other
  // storage, for instance.
  bool ReadAgain() {
    specializer_.Clear();
    return Specialize() && AddConstants() && FindVariant();
  }

  // A new reference; None where there is nothing to launch; null with a Python error set.
  PyObject* LookUpVariant() {
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
      PyErr_SetString(PyExc_TypeError, "_miss must give a TritonVariant");
      return nullptr;
    }
    const FreeThreadedLock lock(state_.mutex);
    PyObject** other = state_.variants.Find(specializer_.key, hash);  // of another thread
    if (other != nullptr) return Ref::Borrow(*other).release();
    state_.variants.Add(specializer_.key, hash, Ref::Borrow(made.get()).release());
    return made.release();
  }

  // Every argument by name. Without defaults where `with_defaults` is false.
  Ref ArgumentDict(bool with_defaults) {
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
  Ref Describe() {
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

  // ---- the launch

  bool AskGrid(uint32_t* dims) {
    const Ref values = ArgumentDict(true);
    return values && triton::AskGrid(grid_, values.get(), variant_, state_.falls_back, dims);
  }

  PyObject* Resolved() {
    const Ref values = ArgumentDict(true);
    if (!values) return nullptr;
    return Py_BuildValue("OiNO(III)", variant_, conversion_.ordinal,
                         PyLong_FromVoidPtr(conversion_.stream), values.get(), dims_[0], dims_[1],
                         dims_[2]);
  }

  PyObject* Object() const { return reinterpret_cast<PyObject*>(self_); }

  DispatcherObject* self_;
  State& state_;
  PyObject* grid_;
  const uint32_t* dims_;
  PyObject* const* args_;
  size_t count_;
  PyObject* keyword_names_;
  CallMode mode_;
  Conversion conversion_;
  Specializer specializer_;
  Bound bound_;
  Words tuning_key_;
  bool is_key_known_ = true;
  bool is_chosen_ = false;
  VariantObject* variant_ = nullptr;
  Ref kept_;
};

CULAUNCH_RARE bool Prepare(DispatcherObject* self) {
  const Ref none(
      PyObject_CallMethod(reinterpret_cast<PyObject*>(self), methods::kPrepare, nullptr));
  if (none && self->state->table == nullptr) {
    PyErr_SetString(PyExc_SystemError, "_prepare chose no driver");
  }
  return self->state->table != nullptr;
}

CULAUNCH_APART PyObject* CallGenerally(DispatcherObject* self, PyObject* grid, const uint32_t* dims,
                                       PyObject* const* args, size_t count, PyObject* keyword_names,
                                       CallMode mode) {
  try {
    return OneCall(self, grid, dims, args, count, keyword_names, mode).Run();
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

// For finding our own mistakes: about half of the choices are compared with what Python says.
CULAUNCH_RARE PyObject* Compared(DispatcherObject* self, PyObject* const* args, size_t count,
                                 PyObject* keyword_names, PyObject* result) {
  Ref kept(result);
  State& state = *self->state;
  const std::shared_ptr<const TunedChoice> choice = state.last_choice;
  state.checks = state.checks * 1664525u + 1013904223u;
  // Where something changed, Python has just handled the call.
  const bool is_compared = choice != nullptr && state.checks >> 31 == 0 && state.guards.Hold();
  if (!is_compared) return kept.release();
  const Ref positional = PositionalTuple(args, count);
  const Ref keywords = KeywordDict(args, count, keyword_names);
  const Ref chosen(PyDict_New());
  if (!positional || !keywords || !chosen) return nullptr;
  for (const auto& one : choice->constants) {
    PyObject* name = state.parameters[one.name].name.get();
    if (PyDict_SetItem(chosen.get(), name, one.value.get()) < 0) return nullptr;
  }
  for (const auto& one : choice->options) {
    if (PyDict_SetItem(chosen.get(), one.name.get(), one.value.get()) < 0) return nullptr;
  }
  const Ref none(PyObject_CallMethod(reinterpret_cast<PyObject*>(self), methods::kCompare, "OOO",
                                     positional.get(), keywords.get(), chosen.get()));
  return none ? kept.release() : nullptr;
}

// A call failed, with a Python error set: where that says so, Triton takes it over.
CULAUNCH_RARE PyObject* FallBack(DispatcherObject* self, PyObject* grid, PyObject* const* args,
                                 size_t count, PyObject* keyword_names) {
  if (!self->state->falls_back || PyErr_ExceptionMatches(g_tritons_way) == 0) return nullptr;
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  const Ref reason(value);
  const Ref positional = PositionalTuple(args, count);
  const Ref keywords = KeywordDict(args, count, keyword_names);
  if (!positional || !keywords) return nullptr;
  return PyObject_CallMethod(reinterpret_cast<PyObject*>(self), methods::kTritonsWay, "OOOO", grid,
                             positional.get(), keywords.get(), reason.get());
}

}  // namespace

PyObject* CallDispatcher(DispatcherObject* self, PyObject* grid, const uint32_t* dims,
                         PyObject* const* args, size_t count, PyObject* keyword_names,
                         CallMode mode) {
  State& state = *self->state;
  PyObject* result;
  uint32_t asked[3];
  if (!CULAUNCH_UNLIKELY(mode != CallMode::kGuarded || state.forms[0] == nullptr ||
                         !state.guards.Hold())) {
    const bool is_done =
        !CULAUNCH_UNLIKELY(dims == nullptr)
            ? Form::Call(state, dims, args, count, keyword_names, &result)
            : Form::CallAsking(state, grid, asked, &dims, args, count, keyword_names, &result);
    if (!CULAUNCH_UNLIKELY(!is_done)) {
      if (CULAUNCH_UNLIKELY(result == nullptr)) {
        return FallBack(self, grid, args, count, keyword_names);
      }
      if (CULAUNCH_UNLIKELY(state.checks != 0)) {
        return Compared(self, args, count, keyword_names, result);
      }
      return result;
    }
  }
  if (state.table == nullptr && !Prepare(self)) return nullptr;
  result = CallGenerally(self, grid, dims, args, count, keyword_names, mode);
  if (CULAUNCH_UNLIKELY(result == nullptr)) {
    return FallBack(self, grid, args, count, keyword_names);
  }
  return state.checks != 0 ? Compared(self, args, count, keyword_names, result) : result;
}

PyObject* DescribeArguments(DispatcherObject* self, PyObject* const* args, size_t count,
                            PyObject* keyword_names) {
  if (self->state->table == nullptr && !Prepare(self)) return nullptr;
  return OneCall(self, Py_None, nullptr, args, count, keyword_names, CallMode::kPlain)
      .Description();
}

}  // namespace triton
