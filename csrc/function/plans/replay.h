// The results that a call with the same inputs as before reuses.
#pragma once

#include <culaunch/graph_slots.h>
#include <culaunch/kernel_graphs.h>

#include <cstring>
#include <memory>
#include <vector>

#include "function/plans/number_slice.h"
#include "function/program/program.h"
#include "python/small_buffer.h"

namespace function {

// A launch that only lacks the addresses of arrays and the stream.
struct ReadyLaunch {
  culaunch::KernelState* kernel;  // borrowed from the program's constants
  CUlaunchConfig config;          // without the stream
  size_t count;                   // of parameters
  // For each parameter: the array whose address it takes, or ~offset of its value in `bytes`.
  const int32_t* sources;
  unsigned char* bytes;
  size_t size;  // of the bytes
  // Pointers into `bytes`. Those to arrays' addresses are current only during a graph pass.
  void** pointers;
  mutable uint64_t version = 0;  // changes with every change of the bytes or the configuration

  // Launch it on a device and a stream. `address_of` returns a pointer to an array's address. *used
  // gets the configuration, for error messages.
  template <class AddressOf>
  CUresult Launch(int ordinal, CUstream stream, CUlaunchConfig* used,
                  const AddressOf& address_of) const {
    const Pointers pointers(*this, address_of);
    *used = config;
    used->hStream = stream;
    return kernel->Launch(*used, ordinal, pointers.get());
  }

  // Add it to a graph as number `index`. False: launch all of them without a graph.
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

// An array to allocate.
struct ReadyMemory {
  size_t bytes;
  const int64_t* shape;
  int32_t rank;
};

// An effect to execute. Its usual inputs are stored here, next to the other effects', because
// driver calls evict most of a program from the processor's caches.
struct ReplayStep {
  EffectCode code;
  uint8_t number = 0;  // the element type of an array that is allocated
  int32_t array = -1;
  int32_t source = -1;                  // of a view
  int64_t offset = -1;                  // of a view, in bytes; of scratch memory, in its block
  const ReadyLaunch* launch = nullptr;  // null: parameters are built at each call
  const ReadyMemory* memory = nullptr;  // of an array that is allocated
  const Effect* effect = nullptr;       // the program's
  PyObject* text = nullptr;             // its place in the body, borrowed; null: not known
};

// A number among the inputs of a program that differs from the last call's.
struct NumberChange {
  int32_t input;
  Word value;
};

// Made by a call. Calls that have released the GIL may still use it. A call that is its only user
// may update its numbers. A call that holds the slots of its graphs may place arrays.
class Replay {
 public:
  static constexpr size_t kAlignment = 256;  // of scratch arrays in their block
  static constexpr size_t kMostScratch = size_t{1} << 40;
  static constexpr size_t kQuickArrays = 64;
  static constexpr int32_t kNothing = -1;

  // The effects of a leaf, and the path to it. `old` is reused if it has no other owner.
  static Replay* Make(const Program& program, const Word* inputs, const Word* registers,
                      int32_t leaf, Replay* old);
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  // Update it to a call with other numbers. False: they need the whole plan. If it is no longer
  // current then, it belongs to no call.
  bool Follow(const Program& program, const NumberChange* changes, size_t count);
  bool is_current() const { return is_current_; }

  const Word* inputs() const { return inputs_; }
  const Word* registers() const { return registers_; }
  int32_t leaf() const { return leaf_; }
  const ReplayStep* begin() const { return steps_; }
  const ReplayStep* end() const { return steps_end_; }
  // The size of the one allocation that the leaf's scratch arrays share. 0: they do not share one.
  size_t scratch_bytes() const { return scratch_bytes_; }

  // Whether the leaf consists of ready launches with their inputs (arguments, allocated arrays, and
  // views, no more than kQuickArrays), and returns None or one of the first two.
  bool is_quick() const { return is_quick_ && is_current_; }
  // For this kind of leaf: the array that it returns; kNothing: None.
  int32_t result() const { return result_; }

  // Whether the leaf consists of several ready launches, and of work that can run before all of
  // them. The launches may then form one graph.
  bool is_chain() const { return graphs_ != nullptr; }

  // Run the launches of a chain, whose arrays all have their addresses: as a graph if graphs are
  // on, otherwise one by one. The GIL is released. `tell` is called before each launch. *failed is
  // the launch that the driver refused, and *used its configuration.
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

  // Count an owner: the program, or a call. The program's lock guards the count.
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
    const int after = graphs_->driver().graphs.several_after();
    if (graphs_->IsResting(after)) return false;
    culaunch::GraphPass pass;
    if (!pass.Begin(*graphs_, stream, ordinal, path_, after)) return false;
    // A driver that asks for arrays is told at each launch.
    const bool is_told = graphs_->driver().note_array != nullptr;
    if (!is_told) Place(address_of);
    const bool has_graph = !is_told && pass.owner() == id_;
    for (size_t i = 0; i < launches_.size(); ++i) {
      const ReadyLaunch& launch = *launches_[i];
      if (has_graph) {
        if (!pass.Refresh(
                i, {launch.version, launch.config, launch.bytes, launch.size, launch.pointers})) {
          return false;
        }
        continue;
      }
      tell();
      if (!launch.AddTo(pass, i, ordinal, address_of)) return false;
      pass.Note(i, launch.version);
    }
    pass.SetOwner(is_told ? 0 : id_);
    return pass.Submit(code);
  }

  // Write the addresses of arrays that have moved since the last graph.
  template <class AddressOf>
  void Place(const AddressOf& address_of) const {
    const ArrayUse* use = uses_.data();
    const ArrayUse* const end = use + uses_.size();
    while (use != end) {
      const int32_t array = use->array;
      const char* const address = *address_of(array);
      const char*& place = places_[static_cast<size_t>(array)];
      const bool has_moved = place != address;
      place = address;
      for (; use != end && use->array == array; ++use) {
        if (!has_moved) continue;
        std::memcpy(use->target, &address, sizeof address);
        ++use->launch->version;
      }
    }
  }
  const ReplayStep* Blamed(const culaunch::Driver& driver, CUresult code) const;

  // Where an array's address stands among the parameters of a launch.
  struct ArrayUse {
    int32_t array;
    const ReadyLaunch* launch;
    char* target;
  };
  // A part of a launch's parameters that depends on numbers.
  struct Changing {
    const ReadyLaunch* launch;
    const Part* part;
    unsigned char* target;
  };
  static constexpr size_t kWidest = 16;  // of those that are compared

  ReadyLaunch* LaunchOf(const Effect& effect) const;
  void FindChanging(const Program& program, const NumberSlice& slice);
  bool TakeGrids(const Program& program, const NumberSlice& slice);
  void PlaceScratch();
  void FindChain(const Program& program);
  bool FindResult(const Program& program);
  // Whether the quick path can run all steps but the last, and one step makes the returned array,
  // if any.
  bool AreQuick(int32_t result) const;

  int users_ = 1;
  int32_t leaf_ = -1;
  int32_t result_ = kNothing;
  bool is_quick_ = false;
  bool is_current_ = true;
  uint64_t id_ = 0;                               // unique among all replays
  std::vector<const ReadyLaunch*> launches_;      // of a chain
  std::vector<ArrayUse> uses_;                    // of a chain, grouped by array
  mutable std::vector<const char*> places_;       // of each array, as stored in the uses
  const NumberSlice* slice_ = nullptr;            // of this leaf; owned by the program
  std::vector<Changing> changing_;                // found when numbers change for the first time
  uint64_t path_ = 0;                             // of a chain: which kernels, in which order
  std::shared_ptr<culaunch::GraphSlots> graphs_;  // the program's
  ReplayStep* steps_ = nullptr;
  ReplayStep* steps_end_ = nullptr;
  Word* inputs_ = nullptr;
  Word* registers_ = nullptr;
  size_t scratch_bytes_ = 0;
  size_t bytes_ = 0;  // of the buffer that holds all of the others
  std::unique_ptr<Word[]> room_;
  // Keeps the kernels and the texts alive as long as a call uses it.
  Ref constants_;
  Ref texts_;
};

}  // namespace function
