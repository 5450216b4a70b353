// The general path of a Triton kernel's call: bind the arguments, specialize, look up the variant,
// launch it.
#pragma once

#include <memory>

#include "triton/dispatchers/dispatcher_object.h"
#include "triton/values/bound.h"
#include "triton/values/specialize.h"
#include "triton/variants/tuning.h"
#include "triton/variants/variant.h"

namespace triton {

enum class CallMode {
  kGuarded,  // a usual call: Python handles failed guards
  kPlain,    // without checking the guards
  kResolve,  // launch nothing: return what would be launched
};

// One call, which ends before its arguments are freed.
class GeneralCall {
 public:
  GeneralCall(DispatcherObject* self, PyObject* grid, const uint32_t* dims, PyObject* const* args,
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
  PyObject* Description();

  PyObject* Run();

 private:
  // The arguments and their words in the key (general_arguments.cpp).
  bool Bind();
  bool FillDefaults();
  bool RaiseBinding(const char* what, PyObject* name);
  bool Specialize();
  bool RaiseArgument(Mismatch mismatch, size_t index, PyObject* object);
  bool AddConstants();
  bool AddOptions(Specializer* specializer);
  bool FindTarget(uint64_t* target);

  // The tuned configuration (general_tuning.cpp).
  std::shared_ptr<const TunedChoice> FindChoice();
  bool ReadShapes();
  void AddOrder(Words* key) const;
  void AddTypes(Words* key);
  PyObject* CallTuner();
  bool ApplyChoice(const TunedChoice& choice);
  bool RunHook(const TunedChoice& choice);

  // The variant and its launch.
  PyObject* CallGuarded();
  bool FindVariant();
  bool SetToZero(bool* is_quick);
  bool ReadAgain();
  PyObject* LookUpVariant();
  Ref ArgumentDict(bool with_defaults);
  Ref Describe();
  bool FindGrid(uint32_t* dims);
  PyObject* Resolved();

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
  Words shapes_;  // the facts about shapes that the choice depends on
  bool is_key_known_ = true;
  bool is_in_order_ = true;  // the keywords are in the order of the parameters
  bool is_chosen_ = false;
  bool misses_one_ = false;  // an argument that must be passed
  VariantObject* variant_ = nullptr;
  Ref kept_;
};

}  // namespace triton
