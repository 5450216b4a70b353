// The results that a call with the same inputs as before reuses.
#pragma once

#include <culaunch/graph_slots.h>
#include <culaunch/kernel_graphs.h>

#include <memory>
#include <string>

#include "function/program.h"
#include "python/small_buffer.h"

namespace function {

// A launch that only lacks the addresses of arrays and the stream.
struct ReadyLaunch {
  culaunch::KernelState* kernel;  // borrowed from the program's constants
  CUlaunchConfig config;          // without the stream
  size_t count;                   // of parameters
  // Of each parameter: the array whose address it is, or, as ~offset, where it lies in `bytes`.
  const int32_t* sources;
  unsigned char* bytes;

  // Launch it on a device and a stream; `address_of` gives the place of an array's address.
  // *used is how, for the words of a failure.
  template <class AddressOf>
  CUresult Launch(int ordinal, CUstream stream, CUlaunchConfig* used,
                  const AddressOf& address_of) const {
    const Pointers pointers(*this, address_of);
    *used = config;
    used->hStream = stream;
    return kernel->Launch(*used, ordinal, pointers.get());
  }

  // Likewise as number `index` of a graph; false: all of them are to be launched plainly.
  template <class AddressOf>
  bool AddTo(culaunch::GraphPass& pass, size_t index, int ordinal,
             const AddressOf& address_of) const {
    const Pointers pointers(*this, address_of);
    return kernel->AddTo(pass, index, config, ordinal, pointers.get());
  }

 private:
  class Pointers {
   public:
    template <class AddressOf>
    Pointers(const ReadyLaunch& launch, const AddressOf& address_of) : all_(launch.count) {
      for (size_t i = 0; i < launch.count; ++i) {
        const int32_t source = launch.sources[i];
        all_[i] =
            source >= 0 ? static_cast<const void*>(address_of(source)) : launch.bytes + ~source;
      }
    }
    void** get() const { return const_cast<void**>(all_.data()); }

   private:
    mutable SmallBuffer<const void*, 64> all_;
  };
};

// An array that is allocated.
struct ReadyMemory {
  size_t bytes;
  const int64_t* shape;
  int32_t rank;
};

// An effect to execute. Its usual inputs are stored here, next to the other effects': after the
// driver has worked, little of a program is left in the processor's caches.
struct ReplayStep {
  EffectCode code;
  uint8_t number = 0;  // the element type of an array that is allocated
  int32_t array = -1;
  int32_t source = -1;                  // of a view
  int64_t offset = -1;                  // of a view, in bytes; of scratch memory, in its block
  const ReadyLaunch* launch = nullptr;  // null: parameters are made at each call
  const ReadyMemory* memory = nullptr;  // of an array that is allocated
  const Effect* effect = nullptr;       // the program's
  PyObject* text = nullptr;             // where it stands in the body, borrowed; null: not known
};

// Made by a call, and only read from then on: calls that have let go of the GIL may be in it.
class Replay {
 public:
  static constexpr size_t kAlignment = 256;  // of scratch arrays in their block
  static constexpr size_t kMostScratch = size_t{1} << 40;
  static constexpr size_t kQuickArrays = 64;
  static constexpr int32_t kNothing = -1;

  // The effects of a leaf, and the path to it. `old` is made again if nobody else has it.
  static Replay* Make(const Program& program, const Word* inputs, const Word* registers,
                      int32_t leaf, Replay* old);
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  const Word* inputs() const { return inputs_; }
  const Word* registers() const { return registers_; }
  int32_t leaf() const { return leaf_; }
  const ReplayStep* begin() const { return steps_; }
  const ReplayStep* end() const { return steps_end_; }
  // The size of the arrays that the leaf makes only for itself, which share one allocation. 0: they
  // do not.
  size_t scratch_bytes() const { return scratch_bytes_; }

  // Whether the leaf consists of ready launches with their inputs (arguments, allocated arrays, and
  // views, no more than kQuickArrays), and returns None or one of the first two.
  bool is_quick() const { return is_quick_; }
  // For this kind of leaf: the array that it returns; kNothing: None.
  int32_t result() const { return result_; }

  // Whether the leaf is several launches that are ready, and other work that can run before all of
  // them. Then they may be one graph.
  bool is_chain() const { return graphs_ != nullptr; }

  // The launches of this kind of leaf, whose arrays all have their places: as a graph if launches
  // go that way, or one after another. Without the GIL. `tell` is called before each. *failed is
  // the launch that the driver refused, and *used how it was launched.
  template <class AddressOf, class Tell>
  CUresult LaunchAll(culaunch::Driver& driver, int ordinal, CUstream stream,
                     const AddressOf& address_of, const Tell& tell, const ReplayStep** failed,
                     CUlaunchConfig* used) const {
    CUresult code = CUDA_SUCCESS;
    if (driver.graphs.is_on() && LaunchGraph(ordinal, stream, address_of, tell, &code)) return code;
    if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS) && driver.note_array != nullptr) {
      // Kernels have run: the driver's text says which one failed.
      *failed = Blamed(driver, code);
      *used = (*failed)->launch->config;
      used->hStream = stream;
      return code;
    }
    for (const ReplayStep* step = begin(); step != end(); ++step) {
      if (step->code != EffectCode::kLaunch) continue;
      tell();
      code = step->launch->Launch(ordinal, stream, used, address_of);
      *failed = step;
      if (CULAUNCH_UNLIKELY(code != CUDA_SUCCESS)) return code;
    }
    return CUDA_SUCCESS;
  }

  // Those who have it: the program, and its calls. Under the program's lock.
  void Take() { ++users_; }
  void Drop() {
    if (--users_ == 0) delete this;
  }

 private:
  Replay() = default;
  ~Replay() = default;

  template <class AddressOf, class Tell>
  bool LaunchGraph(int ordinal, CUstream stream, const AddressOf& address_of, const Tell& tell,
                   CUresult* code) const {
    culaunch::GraphPass pass;
    if (!pass.Begin(*graphs_, stream, ordinal, path_, graphs_->driver().graphs.several_after())) {
      return false;
    }
    size_t index = 0;
    for (const ReplayStep* step = begin(); step != end(); ++step) {
      if (step->code != EffectCode::kLaunch) continue;
      tell();
      if (!step->launch->AddTo(pass, index++, ordinal, address_of)) return false;
    }
    return pass.Submit(code);
  }
  const ReplayStep* Blamed(const culaunch::Driver& driver, CUresult code) const;

  void PlaceScratch();
  void FindChain(const Program& program);
  bool FindResult(const Program& program);
  // Whether all steps except the last are done so, and one makes the returned array, if any.
  bool AreQuick(int32_t result) const;

  int users_ = 1;
  int32_t leaf_ = -1;
  int32_t result_ = kNothing;
  bool is_quick_ = false;
  uint64_t path_ = 0;                             // of a chain: which kernels, in which order
  std::shared_ptr<culaunch::GraphSlots> graphs_;  // the program's
  ReplayStep* steps_ = nullptr;
  ReplayStep* steps_end_ = nullptr;
  const Word* inputs_ = nullptr;
  const Word* registers_ = nullptr;
  size_t scratch_bytes_ = 0;
  size_t bytes_ = 0;  // of the room, in which all of the others lie
  std::unique_ptr<Word[]> room_;
  // The kernels and the texts stay as long as a call is in it.
  Ref constants_;
  Ref texts_;
};

}  // namespace function
