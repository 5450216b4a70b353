// The quick path of a Triton call: the properties that earlier calls shared are checked, and not
// computed again.
//
// A launch leaves the processor's caches and branch predictor to the driver. Therefore a call
// should touch little memory, on a straight path. A form is learned from a call that went the
// general way: which arguments it has, and their types. The form keeps the variants that its calls
// selected, each under the words made from the arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "arguments/convert.h"
#include "triton/quick_arguments.h"
#include "triton/state.h"
#include "triton/variant.h"

namespace triton {

// The expected properties of one argument.
struct Step {
  enum Kind : uint8_t {
    kInt,
    kKeyInt,     // whose value an autotuner's choice depends on
    kForcedInt,  // whose type the parameter's annotation says
    kTensor,     // an array with the DLPack C exchange API
    kFloat,
    kBool,
    kNone,
    kConstantInt,  // its value is part of the key
    kConstant,     // the same object
  };
  PyTypeObject* type;  // owned: the argument's
  PyObject* object;    // owned: kConstant's, or a default; else null
  int16_t argument;    // which one of the call's; -1: the default
  Kind kind;
  bool specialize;
  bool align;
  bool is_key;          // of kFloat and kBool: a choice depends on the value
  uint8_t shape_part;   // of kTensor: the first number of its shape that a choice depends on, and
  uint8_t shape_count;  // how many there are
  int8_t bits;          // of kForcedInt: how many the type has; negative: it is signed
};

// The result of a call that went the general way.
struct CallOutcome {
  VariantObject* variant;
  std::shared_ptr<const TunedChoice> choice;
  int ordinal;       // of the device
  const Words& key;  // begins with the key of the arguments
  const Words& shapes;
};

// Note what was chosen for a call, where that is not what the call before had. False with a Python
// error set.
CULAUNCH_APART bool SetLastChoice(State& state, std::shared_ptr<const TunedChoice> choice);

// Reading a tensor may run Python, which calls the same kernel, and may let another thread do so. A
// call therefore takes what it needs of these once, before it reads. That stays while any call is
// running (State::users). Nothing is learned from a call that begins while another learns.
class alignas(64) Form {
 public:
  // Launch on `dims`, if all is as before. False where nothing was done. *result: what the call
  // gives; null with a Python error set. The state must have a form.
  static bool Call(State& state, const uint32_t* dims, PyObject* const* args, size_t count,
                   PyObject* keyword_names, PyObject** result);

  // Likewise on what a grid that is a function gives. It may change what the tensors are: they are
  // read after it. Where false is given, it may have been asked already: then *dims is `asked`.
  static bool CallAsking(State& state, PyObject* grid, uint32_t* asked, const uint32_t** dims,
                         PyObject* const* args, size_t count, PyObject* keyword_names,
                         PyObject** result);

  // The names of the keywords of the form that came last: borrowed; null: it has none.
  static PyObject* LastNames(const State& state);

  // Put the arguments of a call, which came as a tuple and a dict, in the order in which the form
  // that came last has them: borrowed. False where they are not those of that form.
  static bool Arrange(const State& state, PyObject* args, PyObject* keywords, PyObject** arranged);
  static constexpr size_t kMost = Found::kMost;

  // Learn from a call that went the general way. Skip a call that can never be quick, and one whose
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
  static constexpr size_t kMostWords = Found::kMostWords;
  static constexpr int kVariants = 4;
  enum class Outcome {
    kSame,       // as the variant that was expected
    kOther,      // of this form, but not that variant's
    kDifferent,  // not of this form
    kFailed,     // with a Python error set
  };

  // The types of a call's arguments.
  struct Reading {
    const Form* form;
    const Found* found;  // the variant that is expected, and then the one that it is
    int ordinal;
    uint64_t null = 0;
    uint64_t words[kMostWords];  // tells the calls of a form apart; the device comes first
    uint64_t leaves[kMost];      // one for each run-time parameter
    void* pointers[kMost + 1];   // to what the parameters of the variant get
    // The spans of the tensors, if the driver asks for them, and the memory behind them.
    NotedMemory noted[2 * kMost];
    size_t noted_count;
  };

  Form(size_t count, PyObject* names);

  // Find the form and the variant of a call. A user of the state must be counted.
  static Outcome Find(State& state, PyObject* const* args, size_t count, PyObject* keyword_names,
                      Reading* reading);
  // Read for the variant that is expected.
  Outcome Read(const State& state, PyObject* const* args, const Found& expected,
               Reading* reading) const;
  // Launch what was found. False where nothing was done; *result: what the call gives, or null with
  // a Python error set.
  static bool LaunchFound(State& state, Reading& reading, const uint32_t* dims,
                          const QuickArguments& arguments, PyObject** result);
  // Fill in the words of the arguments of a call. False where it is not of this form, or not what
  // led to the outcome.
  bool ReadWords(const State& state, PyObject* const* args, const CallOutcome& outcome,
                 Found* found) const;
  bool AreWordsOf(const CallOutcome& outcome, const uint64_t* words) const;
  // The slower ways to what Read found for the form that came last.
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
  const DLPackExchangeAPI* api_ = nullptr;  // of its tensors; null: it has none
  Found* last_ = nullptr;                   // the one that came last
  std::unique_ptr<Found> found_[kVariants];
  Step steps_[kMost];
  int next_ = 0;  // which one is replaced next
};

}  // namespace triton
