// The quick path of a Triton call: what the calls before had in common, checked and not worked out
// again.
//
// A launch leaves the processor's nearest caches to the driver, so that what counts is how little
// code and data a call touches. A form is learned from a call that went the general way: which
// arguments there are, and of which types. With it are kept the variants that calls of this form
// led to, each under the words that the arguments made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "triton_dispatcher.h"

// What is expected of one argument.
struct TritonStep {
  enum Kind : uint8_t {
    kInt,
    kTensor,  // an array with the DLPack C exchange API
    kFloat,
    kBool,
    kNone,
    kConstantInt,  // its value is part of the key
    kConstant,     // the same object
  };
  PyTypeObject* type;  // of the argument; lives as long as the process (type_table.h)
  PyObject* object;    // owned: kConstant's, or a default; else null
  int16_t argument;    // which one of the call's; -1: the default
  Kind kind;
  bool specialize;
  bool align;
};

class alignas(64) TritonForm {
 public:
  // Launch, if all is as before: on `dims`, or where that is null on what `grid` gives. False where
  // nothing was done. *result: what the call gives; null with a Python error set.
  static bool Call(TritonState& state, PyObject* grid, const uint32_t* dims, PyObject* const* args,
                   size_t count, PyObject* keyword_names, PyObject** result);

  // Learn from a call that went the general way to a variant. A call that can never be quick is
  // left alone.
  static void Learn(TritonState& state, PyObject* const* args, size_t count,
                    PyObject* keyword_names, TritonVariantObject* variant);

  // Forget every form of a dispatcher.
  static void ForgetAll(TritonState& state);

  // For the garbage collector.
  int Traverse(visitproc visit, void* arg) const;

  TritonForm(const TritonForm&) = delete;
  TritonForm& operator=(const TritonForm&) = delete;
  ~TritonForm();

 private:
  static constexpr size_t kMost = kTritonQuickLeaves;  // steps
  static constexpr int kVariants = 4;
  enum class Outcome { kSame, kDifferent, kFailed };

  // What the arguments of a call are.
  struct Reading {
    int ordinal;
    int device_type;
    size_t word_count;
    size_t leaf_count;
    uint64_t words[kMost + 1];   // tells the calls of a form apart; the device comes last
    uint64_t leaves[kMost + 1];  // one for each run-time parameter; a null pointer comes last
  };

  TritonForm(size_t count, PyObject* names)
      : names_(Ref::Borrow(names).release()), count_(static_cast<uint32_t>(count)) {}

  static std::unique_ptr<TritonForm> Make(TritonState& state, PyObject* const* args, size_t count,
                                          PyObject* keyword_names);
  bool AddArgument(const TritonParameter& parameter, PyObject* object, int argument);
  bool AddConstant(TritonState& state, PyObject* object, int argument);
  bool AddStep(TritonStep::Kind kind, PyObject* object, int argument);
  bool IsLike(const TritonForm& other) const;
  static void Drop(TritonState& state, TritonForm* form);
  Outcome Read(TritonState& state, PyObject* const* args, Reading* reading) const;
  TritonVariantObject* Find(const Reading& reading);
  void Add(const Reading& reading, TritonVariantObject* variant);

  PyObject* names_;  // owned; null: no keywords
  uint32_t count_;   // of arguments
  uint16_t step_count_ = 0;
  uint8_t last_ = 0;                               // the variant that came last,
  uint8_t next_ = 0;                               // and the one to be replaced
  const DLPackExchangeAPI* api_ = nullptr;         // of its tensors; null: it has none
  TritonVariantObject* variants_[kVariants] = {};  // owned
  TritonStep steps_[kMost];
  uint64_t words_[kVariants][kMost + 1];
};
