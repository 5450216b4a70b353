// Learning the forms of Triton calls.
#include <algorithm>
#include <utility>

#include "triton/quick/form.h"

namespace triton {

namespace {

// While an object of this class lives, nothing else is learned.
class Learning {
 public:
  explicit Learning(State& state) : state_(state) { state_.is_learning = true; }
  Learning(const Learning&) = delete;
  Learning& operator=(const Learning&) = delete;
  ~Learning() { state_.is_learning = false; }

 private:
  State& state_;
};

}  // namespace

Form::Form(size_t count, PyObject* names)
    : names_(Ref::Borrow(names).release()), count_(static_cast<uint32_t>(count)) {
  const Py_ssize_t size = names != nullptr ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < size; ++i) each_name_.push_back(PyTuple_GetItem(names, i));
}

Form::~Form() {
  for (size_t i = 0; i < step_count_; ++i) {
    Py_XDECREF(steps_[i].object);
    Py_DECREF(reinterpret_cast<PyObject*>(steps_[i].type));
  }
  Py_XDECREF(names_);
}

bool Form::AddStep(Step::Kind kind, PyObject* object, int argument) {
  if (step_count_ == kMost || argument > INT16_MAX) return false;
  const bool is_kept = kind == Step::kConstant || argument < 0;
  steps_[step_count_++] = {Py_TYPE(object),
                           is_kept ? Ref::Borrow(object).release() : nullptr,
                           static_cast<int16_t>(argument),
                           kind,
                           true,
                           true,
                           false,
                           0,
                           0,
                           0};
  Py_INCREF(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  const bool is_constant = kind == Step::kConstant || kind == Step::kConstantInt;
  leaf_count_ = static_cast<uint8_t>(leaf_count_ + (is_constant ? 0 : 1));
  const bool is_word = kind == Step::kInt || kind == Step::kForcedInt || kind == Step::kTensor ||
                       kind == Step::kConstantInt;
  const int words = kind == Step::kKeyInt ? 2 : is_word ? 1 : 0;
  word_count_ = static_cast<uint8_t>(word_count_ + words);
  return word_count_ < kMostWords;
}

// Add the part of the last tensor's shape that a choice reads.
bool Form::AddShape(const State& state, size_t parameter) {
  Step& step = steps_[step_count_ - 1];
  const auto& parts = state.shape_key;
  const auto begin = std::find_if(parts.begin(), parts.end(),
                                  [&](const KeyPart& part) { return part.parameter == parameter; });
  const auto end = std::find_if(begin, parts.end(),
                                [&](const KeyPart& part) { return part.parameter != parameter; });
  const auto count = static_cast<size_t>(end - begin);
  if (count == 0 || step.kind == Step::kNone) return true;
  if (step.kind != Step::kTensor || parts.size() > UINT8_MAX) return false;
  if (word_count_ + count >= kMostWords) return false;
  step.shape_part = static_cast<uint8_t>(begin - parts.begin());
  step.shape_count = static_cast<uint8_t>(count);
  word_count_ = static_cast<uint8_t>(word_count_ + count);
  return true;
}

// Add a run-time argument of a common kind.
bool Form::AddArgument(const Parameter& parameter, PyObject* object, int argument, bool is_key) {
  const ForcedType& forced = parameter.forced;
  const bool is_forced = forced.type_class != ForcedType::kNotForced;
  Step::Kind kind;
  if (is_forced) {
    const bool is_integer =
        forced.type_class == ForcedType::kSigned || forced.type_class == ForcedType::kUnsigned;
    if (!is_integer || PyLong_CheckExact(object) == 0 || is_key) return false;
    kind = Step::kForcedInt;
  } else if (PyLong_CheckExact(object)) {
    kind = is_key ? Step::kKeyInt : Step::kInt;
  } else if (PyFloat_CheckExact(object)) {
    kind = Step::kFloat;
  } else if (PyBool_Check(object)) {
    kind = Step::kBool;
  } else if (object == Py_None) {
    kind = Step::kNone;
  } else {
    TypeEntry scratch;
    const TypeEntry* entry = LookUpType(Py_TYPE(object), &scratch);
    if (entry == nullptr) PyErr_Clear();
    if (entry == nullptr || entry->kind != ArgumentKind::kExchange || entry->says_otherwise) {
      return false;
    }
    if (api_ != nullptr && api_ != entry->api) return false;
    api_ = entry->api;
    kind = Step::kTensor;
  }
  if (!AddStep(kind, object, argument)) return false;
  steps_[step_count_ - 1].specialize = parameter.specialize;
  steps_[step_count_ - 1].align = parameter.align;
  if (is_forced) {
    const bool is_signed = forced.type_class == ForcedType::kSigned;
    steps_[step_count_ - 1].bits = static_cast<int8_t>(is_signed ? -forced.bits : forced.bits);
  }
  if (is_key && kind == Step::kTensor) return false;
  if (is_key && (kind == Step::kFloat || kind == Step::kBool)) {
    steps_[step_count_ - 1].is_key = true;
    ++word_count_;
  }
  return true;
}

// Add a constant or an option, if its identity determines its value for as long as it is kept.
bool Form::AddConstant(State& state, PyObject* object, int argument) {
  if (PyLong_CheckExact(object)) return AddStep(Step::kConstantInt, object, argument);
  uint64_t number = 0;
  bool is_immutable = object == Py_None || PyBool_Check(object) || PyFloat_CheckExact(object);
  if (!is_immutable && !state.interner.Number(object, &number, &is_immutable)) {
    PyErr_Clear();
    return false;
  }
  return is_immutable && AddStep(Step::kConstant, object, argument);
}

std::unique_ptr<Form> Form::Make(State& state, PyObject* const* args, size_t count,
                                 PyObject* keyword_names) {
  std::unique_ptr<Form> form(new Form(count, keyword_names));
  for (const size_t i : state.runtime) {
    const Parameter& parameter = state.parameters[i];
    const int argument = ArgumentOf(parameter.name.get(), i, count, keyword_names);
    PyObject* object = argument >= 0 ? args[argument] : parameter.default_value.get();
    // A default value is not part of an autotuner's key.
    const auto& keys = state.tuning_key;
    const bool is_key =
        argument >= 0 && std::any_of(keys.begin(), keys.end(), [&](const KeyPart& part) {
          // The types of the arguments are part of any form.
          return part.parameter == i &&
                 (part.kind == KeyKind::kValue || part.kind == KeyKind::kNumber);
        });
    if (object == nullptr) return nullptr;  // the general path reports what is missing
    if (!form->AddArgument(parameter, object, argument, is_key)) return nullptr;
    if (argument >= 0 && !form->AddShape(state, i)) return nullptr;
  }
  for (const size_t i : state.constants) {
    const int argument = ArgumentOf(state.parameters[i].name.get(), i, count, keyword_names);
    // A missing argument is the same in all calls of this form.
    if (argument >= 0 && !form->AddConstant(state, args[argument], argument)) return nullptr;
  }
  // The rest are options.
  const Py_ssize_t size = keyword_names != nullptr ? PyTuple_Size(keyword_names) : 0;
  for (Py_ssize_t k = 0; k < size; ++k) {
    PyObject* name = PyTuple_GetItem(keyword_names, k);
    const bool is_parameter = std::any_of(
        state.parameters.get(), state.parameters.get() + state.count,
        [&](const Parameter& one) { return PyUnicode_Compare(one.name.get(), name) == 0; });
    const int argument = static_cast<int>(count) + static_cast<int>(k);
    if (!is_parameter && !form->AddConstant(state, args[argument], argument)) return nullptr;
  }
  return form;
}

// Whether the general path has the same words. It has one for each run-time argument of a form.
bool Form::AreWordsOf(const CallOutcome& outcome, const uint64_t* words) const {
  if (words[0] != static_cast<uint64_t>(outcome.ordinal)) return false;
  size_t word = 1;
  for (size_t i = 0; i < leaf_count_; ++i) {
    const Step::Kind kind = steps_[i].kind;
    const bool is_word = kind <= Step::kTensor;
    if (is_word && words[word] != outcome.key[i]) return false;
    word += kind == Step::kKeyInt ? 2 : is_word || steps_[i].is_key ? 1 : 0;
    for (size_t k = 0; k < steps_[i].shape_count; ++k) {
      if (words[word++] != outcome.shapes[steps_[i].shape_part + k]) return false;
    }
  }
  return true;
}

// Read the arguments again, for their words.
bool Form::AddVariant(State& state, PyObject* const* args, const CallOutcome& outcome) {
  auto made = std::make_unique<QuickVariant>();
  if (!made->Set(outcome.variant, outcome.choice, leaf_count_)) return false;
  if (!ReadWords(state, args, outcome, made.get())) return false;
  if (PyDict_Size(outcome.variant->constants) != 0) state.variants_have_constants = true;
  // A variant in use by another call stays. The only remaining user is the learner.
  std::unique_ptr<QuickVariant>& place = found_[next_];
  if (place != nullptr && state.users != 1) return false;
  last_ = made.get();
  next_ = (next_ + 1) % kVariants;
  std::swap(place, made);  // then free the previous one, which may run Python
  return true;
}

namespace {

bool is_learning_used = true;

}  // namespace

void Form::UseLearning(bool use) { is_learning_used = use; }

void Form::Learn(State& state, PyObject* const* args, size_t count, PyObject* keyword_names,
                 const CallOutcome& outcome) {
#ifndef Py_GIL_DISABLED
  // If calls keep changing, learning costs more than it saves.
  constexpr unsigned kFreely = 64;
  if (!is_learning_used) return;
  if (++state.misses > kFreely && state.misses % 16 != 0) return;
  if (state.retired.size() > kFreely) return;  // many calls at once, all different
  if (state.is_learning) return;  // called from the reading below, or from another thread
  {
    const StateUse use(state);
    const Learning learning(state);
    LearnAlone(state, args, count, keyword_names, outcome);
  }
  FreeRetired(state);
#else
  (void)state, (void)args, (void)count, (void)keyword_names, (void)outcome;
#endif
}

// Any Python code that runs here may clear everything.
void Form::LearnAlone(State& state, PyObject* const* args, size_t count, PyObject* keyword_names,
                      const CallOutcome& outcome) {
  const unsigned times_forgotten = state.times_forgotten;
  // The call does not provide a value that a decorator sets instead of an argument.
  if (outcome.choice != nullptr && outcome.choice->sets_arguments) return;
  std::unique_ptr<Form> made = Make(state, args, count, keyword_names);
  if (made == nullptr || state.times_forgotten != times_forgotten) return;
  for (Form* form : state.forms) {
    if (form == nullptr || !form->IsLike(*made)) continue;
    form->AddVariant(state, args, outcome);
    return;
  }
  if (!made->AddVariant(state, args, outcome)) return;
  if (state.times_forgotten != times_forgotten) return;
  // The least recently used form is dropped.
  constexpr int kLast = State::kForms - 1;
  if (state.forms[kLast] != nullptr) state.retired.push_back(state.forms[kLast]);
  std::copy_backward(state.forms, state.forms + kLast, state.forms + State::kForms);
  state.forms[0] = made.release();
}

void Form::ForgetAll(State& state) {
  for (Form*& form : state.forms) {
    if (form != nullptr) state.retired.push_back(std::exchange(form, nullptr));
  }
  state.misses = 0;
  ++state.times_forgotten;
  FreeRetired(state);
}

// Free forms once no call uses them.
void Form::FreeRetired(State& state) {
  if (state.users != 0) return;
  std::vector<Form*> retired;
  retired.swap(state.retired);  // freeing may run Python, which may learn
  for (Form* form : retired) delete form;
}

int Form::Traverse(visitproc visit, void* arg, unsigned traversal) const {
  for (size_t i = 0; i < step_count_; ++i) {
    Py_VISIT(steps_[i].object);
    Py_VISIT(reinterpret_cast<PyObject*>(steps_[i].type));
  }
  for (const std::unique_ptr<QuickVariant>& one : found_) {
    const int failed = one != nullptr ? one->Traverse(visit, arg, traversal) : 0;
    if (failed != 0) return failed;
  }
  return 0;
}

bool Form::IsLike(const Form& other) const {
  return count_ == other.count_ && AreSameNames(names_, other.names_) && api_ == other.api_ &&
         std::equal(steps_, steps_ + step_count_, other.steps_, other.steps_ + other.step_count_,
                    [](const Step& a, const Step& b) {
                      return a.type == b.type && a.object == b.object && a.kind == b.kind &&
                             a.is_key == b.is_key && a.shape_count == b.shape_count;
                    });
}

}  // namespace triton
