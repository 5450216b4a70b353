// The quick path of a Triton call: the properties that earlier calls shared are checked, and not
// computed again.
//
// A launch leaves the processor's caches and branch predictor to the driver. A call should touch
// little memory, on a straight path. A form is learned from a call that took the general path. It
// describes the arguments of the call and their types. The form keeps the variants that its calls
// selected, each under the words made from the arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "arguments/convert.h"
#include "triton/dispatchers/state.h"
#include "triton/quick/quick_arguments.h"
#include "triton/variants/variant.h"

namespace triton {

// The expected properties of one argument.
struct Step {
  enum Kind : uint8_t {
    kInt,
    kKeyInt,     // its value is part of an autotuner's key
    kForcedInt,  // the annotation of the parameter determines its type
    kTensor,     // an array with the DLPack C exchange API
    kFloat,
    kBool,
    kNone,
    kConstantInt,  // its value is part of the key
    kConstant,     // the identical object
  };
  PyTypeObject* type;  // owned: the type of the argument
  PyObject* object;    // owned: kConstant's, or a default; else null
  int16_t argument;    // the argument's index in the call; -1: the default
  Kind kind;
  bool specialize;
  bool align;
  bool is_key;          // of kFloat and kBool: a choice depends on the value
  uint8_t shape_part;   // of kTensor: the first number of its shape that a choice depends on, and
  uint8_t shape_count;  // how many there are
  int8_t bits;          // of kForcedInt: the number of bits of the type; negative: it is signed
};

// The result of a call on the general path.
struct CallOutcome {
  VariantObject* variant;
  std::shared_ptr<const TunedChoice> choice;
  int ordinal;       // of the device
  const Words& key;  // begins with the key of the arguments
  const Words& shapes;
};

// Note the choice for a call, if it differs from the previous call's. False with a Python error
// set.
CULAUNCH_APART bool SetLastChoice(State& state, std::shared_ptr<const TunedChoice> choice);

// Reading a tensor may run Python, which calls the same kernel, and may let another thread do so. A
// call therefore copies the members that it needs, once, before it reads. They stay valid while any
// call is running (State::users). A call that begins while another one learns skips learning.
class alignas(64) Form {
 public:
  // Launch on `dims` if nothing has changed. False if nothing was done. *result is the call's
  // result, or null with a Python error set. The state must have a form.
  static bool Call(State& state, const uint32_t* dims, PyObject* const* args, size_t count,
                   PyObject* keyword_names, PyObject** result);

  // The same with the result of a grid function. The function may change the tensors, so they are
  // read after it. If this returns false, the function may already have been called. *dims is then
  // `asked`.
  static bool CallAsking(State& state, PyObject* grid, uint32_t* asked, const uint32_t** dims,
                         PyObject* const* args, size_t count, PyObject* keyword_names,
                         PyObject** result);

  // The names of the keywords of the most recent form: borrowed; null if it has none.
  static PyObject* LastNames(const State& state);

  // Put the arguments of a call, which came as a tuple and a dict, in the order of the most recent
  // form: borrowed. False if the form has other arguments.
  static bool Arrange(const State& state, PyObject* args, PyObject* keywords, PyObject** arranged);
  static constexpr size_t kMost = QuickVariant::kMost;

  // Learn from a call on the general path. Skip a call that can never be quick, and one whose
  // arguments have changed.
  static void Learn(State& state, PyObject* const* args, size_t count, PyObject* keyword_names,
                    const CallOutcome& outcome);

  // False: learn nothing from now on. The switch of _core.use_shortcut.
  static void UseLearning(bool use);

  // Forget every form of a dispatcher.
  static void ForgetAll(State& state);

  // For the garbage collector.
  int Traverse(visitproc visit, void* arg, unsigned traversal) const;

  Form(const Form&) = delete;
  Form& operator=(const Form&) = delete;
  ~Form();

 private:
  static constexpr size_t kMostWords = QuickVariant::kMostWords;
  static constexpr int kVariants = 4;
  enum class Outcome {
    kSame,       // the expected variant
    kOther,      // this form, but another variant
    kDifferent,  // another form
    kFailed,     // a Python error is set
  };

  // The types of a call's arguments.
  struct Reading {
    const Form* form;
    const QuickVariant* found;  // the expected variant, later the actual one
    int ordinal;
    uint64_t null = 0;
    uint64_t words[kMostWords];  // distinguishes the calls of a form; the device comes first
    uint64_t leaves[kMost];      // one for each run-time parameter
    void* pointers[kMost + 1];   // pointers to the values for the variant's parameters
    // The memory spans of the tensors, if the driver asks for them, and of their base arrays.
    NotedMemory noted[2 * kMost];
    size_t noted_count;
  };

  Form(size_t count, PyObject* names);

  // Find the form and the variant of a call. A user of the state must be counted.
  static Outcome Find(State& state, PyObject* const* args, size_t count, PyObject* keyword_names,
                      Reading* reading);
  // Read the arguments, expecting this variant.
  Outcome Read(const State& state, PyObject* const* args, const QuickVariant& expected,
               Reading* reading) const;
  // Launch the variant that was found. False if nothing was done; *result: the call's result, or
  // null with a Python error set.
  static bool LaunchFound(State& state, Reading& reading, const uint32_t* dims,
                          const QuickArguments& arguments, PyObject** result);
  // Fill in the words of a call's arguments. False if the call has another form, or did not lead to
  // the outcome.
  bool ReadWords(const State& state, PyObject* const* args, const CallOutcome& outcome,
                 QuickVariant* found) const;
  bool AreWordsOf(const CallOutcome& outcome, const uint64_t* words) const;
  // The slower ways to a result of Read, for the most recent form.
  static Outcome ReadSlowly(State& state, PyObject* const* args, size_t count,
                            PyObject* keyword_names, const Form* first, Outcome outcome,
                            Reading* reading);
  bool FindOther(Reading* reading);

  static std::unique_ptr<Form> Make(State& state, PyObject* const* args, size_t count,
                                    PyObject* keyword_names);
  bool AddArgument(const Parameter& parameter, PyObject* object, int argument, bool is_key);
  bool AddConstant(State& state, PyObject* object, int argument);
  bool AddStep(Step::Kind kind, PyObject* object, int argument);
  bool AddShape(const State& state, size_t parameter);
  static void LearnAlone(State& state, PyObject* const* args, size_t count, PyObject* keyword_names,
                         const CallOutcome& outcome);
  bool AddVariant(State& state, PyObject* const* args, const CallOutcome& outcome);
  bool IsLike(const Form& other) const;
  static void FreeRetired(State& state);

  PyObject* names_;                   // owned; null: no keywords
  std::vector<PyObject*> each_name_;  // of these: borrowed
  uint32_t count_;                    // of arguments
  uint16_t step_count_ = 0;
  uint8_t leaf_count_ = 0;
  uint8_t word_count_ = 1;
  const DLPackExchangeAPI* api_ = nullptr;  // of its tensors; null if it has none
  QuickVariant* last_ = nullptr;            // the most recent one
  std::unique_ptr<QuickVariant> found_[kVariants];
  Step steps_[kMost];
  int next_ = 0;  // the one to replace next
};

}  // namespace triton
