// The quick path of a Triton call: what the calls before had in common, checked and not worked out
// again.
//
// A launch leaves the processor's caches and branch predictor to the driver, so that what counts is
// how little a call touches, and how straight its way is. A form is learned from a call that went
// the general way: which arguments there are, and of which types. With it are kept the variants
// that calls of this form led to, each under the words that the arguments made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "triton/dispatcher.h"

// What is expected of one argument.
struct TritonStep {
  enum Kind : uint8_t {
    kInt,
    kKeyInt,  // whose value an autotuner's choice depends on
    kTensor,  // an array with the DLPack C exchange API
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
};

// A variant that calls of a form led to.
struct TritonFound {
  static constexpr size_t kMost = 64;                  // arguments, and parameters
  static constexpr size_t kMostWords = 2 * kMost + 1;  // of a key

  TritonFound() = default;
  TritonFound(const TritonFound&) = delete;
  TritonFound& operator=(const TritonFound&) = delete;
  ~TritonFound() { Py_XDECREF(reinterpret_cast<PyObject*>(variant)); }

  // Take a variant over, and find the parameter of each leaf. False where it has others than those
  // of `leaf_count` leaves and null pointers for scratch memory that it does not need.
  bool Set(TritonVariantObject* variant, std::shared_ptr<const TunedChoice> choice,
           size_t leaf_count);

  // For the garbage collector.
  int Traverse(visitproc visit, void* arg, unsigned traversal) const;

  TritonVariantState* state = nullptr;
  TritonVariantObject* variant = nullptr;     // owned
  std::shared_ptr<const TunedChoice> choice;  // of an autotuner; null: there is none
  uint8_t nulls[2] = {kMost, kMost};          // the parameters that get null pointers, and
  uint8_t slots[kMost];                       // of each leaf; kMost: none
  uint64_t words[kMostWords];
};

// What a call that went the general way led to.
struct TritonOutcome {
  TritonVariantObject* variant;
  std::shared_ptr<const TunedChoice> choice;
  int ordinal;       // of the device
  const Words& key;  // begins with that of the arguments
};

// Which argument a parameter's value is; -1 where there is none.
int TritonArgumentOf(PyObject* name, size_t index, size_t count, PyObject* keyword_names);

// Reading a tensor may run Python, which calls the same kernel, and may let another thread do so. A
// call therefore takes what it needs of these once, before it reads, and it stays while any call is
// under way (TritonState::users); nothing is learned from a call that begins while another learns.
class alignas(64) TritonForm {
 public:
  // Launch on `dims`, if all is as before. False where nothing was done. *result: what the call
  // gives; null with a Python error set. The state must have a form.
  static bool Call(TritonState& state, const uint32_t* dims, PyObject* const* args, size_t count,
                   PyObject* keyword_names, PyObject** result);

  // Likewise on what a grid that is a function gives. It may change what the tensors are: they are
  // read after it. Where false is given, it may have been asked already: then *dims is `asked`.
  static bool CallAsking(TritonState& state, PyObject* grid, uint32_t* asked, const uint32_t** dims,
                         PyObject* const* args, size_t count, PyObject* keyword_names,
                         PyObject** result);

  // Learn from a call that went the general way. A call that can never be quick is left alone, and
  // so is one whose arguments are not what they were any more.
  static void Learn(TritonState& state, PyObject* const* args, size_t count,
                    PyObject* keyword_names, const TritonOutcome& outcome);

  // Forget every form of a dispatcher.
  static void ForgetAll(TritonState& state);

  // For the garbage collector.
  int Traverse(visitproc visit, void* arg, unsigned traversal) const;

  TritonForm(const TritonForm&) = delete;
  TritonForm& operator=(const TritonForm&) = delete;
  ~TritonForm();

 private:
  static constexpr size_t kMost = TritonFound::kMost;
  static constexpr size_t kMostWords = TritonFound::kMostWords;
  static constexpr int kVariants = 4;
  enum class Outcome {
    kSame,       // as the variant that was expected
    kOther,      // of this form, but not that variant's
    kDifferent,  // not of this form
    kFailed,     // with a Python error set
  };

  // What the arguments of a call are.
  struct Reading {
    const TritonForm* form;
    const TritonFound* found;  // the variant that is expected, and then the one that it is
    int ordinal;
    uint64_t null = 0;
    uint64_t words[kMostWords];  // tells the calls of a form apart; the device comes first
    uint64_t leaves[kMost];      // one for each run-time parameter
    void* pointers[kMost + 1];   // to what the parameters of the variant get
    // What the tensors span, where the driver wants to know.
    const void* begins[kMost];
    size_t spans[kMost];
  };

  TritonForm(size_t count, PyObject* names)
      : names_(Ref::Borrow(names).release()), count_(static_cast<uint32_t>(count)) {}

  // Find the form and the variant of a call. A user of the state must be counted.
  static Outcome Find(TritonState& state, PyObject* const* args, size_t count,
                      PyObject* keyword_names, Reading* reading);
  // Read for the variant that is expected.
  Outcome Read(const TritonState& state, PyObject* const* args, const TritonFound& expected,
               Reading* reading) const;
  // Launch what was found: what the call gives, or null with a Python error set.
  static void LaunchFound(TritonState& state, Reading& reading, const uint32_t* dims,
                          PyObject** result);
  // Fill in the words of the arguments of a call. False where it is not of this form, or not what
  // led to the outcome.
  bool ReadWords(const TritonState& state, PyObject* const* args, const TritonOutcome& outcome,
                 TritonFound* found) const;
  bool AreWordsOf(const TritonOutcome& outcome, const uint64_t* words) const;
  // The slower ways to what Read found for the form that came last.
  static Outcome ReadSlowly(TritonState& state, PyObject* const* args, size_t count,
                            PyObject* keyword_names, const TritonForm* first, Outcome outcome,
                            Reading* reading);
  bool FindOther(Reading* reading);

  static std::unique_ptr<TritonForm> Make(TritonState& state, PyObject* const* args, size_t count,
                                          PyObject* keyword_names);
  bool AddArgument(const TritonParameter& parameter, PyObject* object, int argument, bool is_key);
  bool AddConstant(TritonState& state, PyObject* object, int argument);
  bool AddStep(TritonStep::Kind kind, PyObject* object, int argument);
  static void LearnAlone(TritonState& state, PyObject* const* args, size_t count,
                         PyObject* keyword_names, const TritonOutcome& outcome);
  bool AddVariant(TritonState& state, PyObject* const* args, const TritonOutcome& outcome);
  bool IsLike(const TritonForm& other) const;
  static void FreeRetired(TritonState& state);

  PyObject* names_;  // owned; null: no keywords
  uint32_t count_;   // of arguments
  uint16_t step_count_ = 0;
  uint8_t leaf_count_ = 0;
  uint8_t word_count_ = 1;
  const DLPackExchangeAPI* api_ = nullptr;  // of its tensors; null: it has none
  TritonFound* last_ = nullptr;             // the one that came last
  std::unique_ptr<TritonFound> found_[kVariants];
  TritonStep steps_[kMost];
  int next_ = 0;  // which one is replaced next
};
