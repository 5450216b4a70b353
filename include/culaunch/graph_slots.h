// culaunch::GraphSlots: the graphs of one kernel, or of one program: for each stream and path.
#pragma once

#include <cuda.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <memory>
#include <new>

#include "driver.h"
#include "graphs.h"
#include "guard.h"
#include "launch_graph.h"
#include "launch_recorder.h"
#include "version.h"

#if !defined(_WIN32)
#include <sched.h>
#endif

CULAUNCH_NAMESPACE_BEGIN

// Launches that go together: planned by the caller, submitted as a graph or launched plainly. One
// thread has the slots at a time, and nobody waits for them: who finds them taken launches plainly.
class GraphSlots {
 public:
  GraphSlots(const GraphSlots&) = delete;
  GraphSlots& operator=(const GraphSlots&) = delete;
  // Calls are not looked at until `unseen` of them were made.
  explicit GraphSlots(Driver& driver, int unseen = 0) noexcept : rest_(unseen), driver_(driver) {}
  ~GraphSlots() {
    for (Slot& slot : slots_) {
      // A destroyed graph has no owner any more, and its driver may be unloaded.
      if (slot.graph == nullptr || !slot.graph->IsMade()) continue;
      driver_.graphs.Remove(slot.graph.get());
      const RelaxedCaptureGuard relaxed(driver_);
      slot.graph.reset();
    }
  }

  // Whether this call goes plainly without a look at the stream and the slots. Nothing else is paid
  // for kernels that are launched a few times, or that have no room for a graph. Where many take
  // turns, the slots are in no cache. `after` is 0 if graphs are forced on.
  bool IsResting(int after) noexcept {
    const int rest = rest_.load(std::memory_order_relaxed);
    if (rest == 0 || (after == 0 && patience_.load(std::memory_order_relaxed) == 0)) return false;
    rest_.store(rest - 1, std::memory_order_relaxed);
    return true;
  }

  bool TryEnter() noexcept { return !is_taken_.exchange(true, std::memory_order_acquire); }
  void Leave() noexcept { is_taken_.store(false, std::memory_order_release); }
  Driver& driver() const noexcept { return driver_; }

 private:
  friend class GraphPass;
  static constexpr size_t kSlots = 8;
  static constexpr int kNever = INT_MIN;
  // Calls until it is asked again whether there is room: twice as many each time that there is
  // none.
  static constexpr int kPatience = 16;
  static constexpr int kMostPatience = 256;
  static constexpr uint32_t kRecent = 64;  // calls in which a graph must have been used to stay

  struct Slot {
    uint64_t stream = 0;  // the driver's number of it, which no other stream ever has
    uint64_t path = 0;
    int ordinal = -1;
    int calls = 0;  // kNever: it cannot be a graph
    uint32_t last = 0;
    std::atomic<bool> is_used{false};  // since Graphs looked
    std::unique_ptr<LaunchGraph> graph;
  };

  // There is no room for a graph. True: none of the slots has one, and they rest.
  bool Rest() noexcept {
    for (const Slot& slot : slots_) {
      if (slot.graph != nullptr) return false;
    }
    const int before = patience_.load(std::memory_order_relaxed);
    const int patience = before == 0              ? kPatience
                         : before < kMostPatience ? 2 * before
                                                  : kMostPatience;
    patience_.store(patience, std::memory_order_relaxed);
    rest_.store(patience, std::memory_order_relaxed);
    return true;
  }

  Slot& Find(uint64_t stream, int ordinal, uint64_t path) noexcept {
    ++now_;
    Slot* oldest = nullptr;
    for (Slot& slot : slots_) {
      if (slot.stream == stream && slot.path == path && slot.ordinal == ordinal) return slot;
      const bool may_go = slot.graph == nullptr || now_ - slot.last > kRecent;
      if (may_go && (oldest == nullptr || now_ - slot.last > now_ - oldest->last)) oldest = &slot;
    }
    if (oldest == nullptr) return none_;
    Forget(*oldest);
    oldest->stream = stream;
    oldest->path = path;
    oldest->ordinal = ordinal;
    oldest->calls = 0;
    return *oldest;
  }

  void Forget(Slot& slot) noexcept {
    if (slot.graph == nullptr) return;
    driver_.graphs.Remove(slot.graph.get());
    const RelaxedCaptureGuard relaxed(driver_);
    slot.graph.reset();
  }

  // Whether launches on a stream are the primary context's: a graph runs where its nodes say.
  bool IsOfPrimary(CUstream stream, int ordinal) const noexcept {
    CUcontext own = nullptr;
    CUcontext primary = nullptr;
    CUgreenCtx green = nullptr;
    if (driver_.PrimaryContext(ordinal, &primary) != CUDA_SUCCESS ||
        driver_.cuStreamGetCtx(stream, &own) != CUDA_SUCCESS || own != primary) {
      return false;
    }
    return IsDefaultStream(stream) || driver_.cuStreamGetGreenCtx == nullptr ||
           driver_.cuStreamGetGreenCtx(stream, &green) != CUDA_SUCCESS || green == nullptr;
  }

  // Every call reads these, so they come first.
  std::atomic<int> rest_;  // calls that go plainly from now on
  std::atomic<bool> is_taken_{false};
  std::atomic<int> patience_{0};  // the last rest because there was no room; 0: there was
  Driver& driver_;
  uint32_t now_ = 0;
  Slot slots_[kSlots];
  Slot none_;  // for kernels that come too often to be remembered
};

// One round of launches through slots. Nothing is launched before Submit.
class GraphPass {
 public:
  GraphPass() noexcept = default;
  GraphPass(const GraphPass&) = delete;
  GraphPass& operator=(const GraphPass&) = delete;
  ~GraphPass() { End(); }

  // `path` tells sequences of kernels of the same slots apart. `after`: the number of calls after
  // which the next one makes the graph. False: launch plainly.
  bool Begin(GraphSlots& slots, CUstream stream, int ordinal, uint64_t path, int after) noexcept {
    Driver& driver = slots.driver();
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    unsigned long long id = 0;
    // A recorder takes each launch by itself.
    if (CULAUNCH_UNLIKELY(driver.graphs.IsRecording()) && LaunchRecorder::Current() != nullptr) {
      return false;
    }
    // Under capture a launch is a node of that capture, and asking for the number would end it.
    if (driver.cuStreamIsCapturing(stream, &capture) != CUDA_SUCCESS ||
        capture != CU_STREAM_CAPTURE_STATUS_NONE ||
        driver.cuStreamGetId(stream, &id) != CUDA_SUCCESS || !driver.graphs.Enter()) {
      return false;
    }
    if (!slots.TryEnter()) {
      driver.graphs.Leave();
      return false;
    }
    if (context_.Enter(driver, ordinal) != CUDA_SUCCESS) {
      slots.Leave();
      driver.graphs.Leave();
      return false;
    }
    slots_ = &slots;
    stream_ = stream;
    slot_ = &slots.Find(id, ordinal, path);
    if (slot_->graph != nullptr && slot_->graph->IsMade()) return true;
    if (slot_ != &slots.none_ && MayMake(ordinal, after)) return true;
    End();
    return false;
  }

  // Add or set launch `index`, in their order. False: launch all of them plainly.
  bool Set(size_t index, const GraphLaunch& launch) {
    LaunchGraph& graph = *slot_->graph;
    if (CULAUNCH_UNLIKELY(is_new_)) return Add(launch);
    if (!graph.Fits(index, launch.function)) return Fail(0);
    const bool is_noted = slots_->driver().note_array != nullptr;
    return graph.Set(index, launch, is_noted) == CUDA_SUCCESS || Fail(GraphSlots::kNever);
  }

  // The same with numbers of versions: see LaunchGraph::Refresh, and who sets them.
  uint64_t owner() const noexcept { return is_new_ ? 0 : slot_->graph->owner(); }
  void SetOwner(uint64_t owner) noexcept { slot_->graph->set_owner(owner); }
  void Note(size_t index, uint64_t version) noexcept { slot_->graph->Note(index, version); }
  bool Refresh(size_t index, const LaunchGraph::Version& version) noexcept {
    return slot_->graph->Refresh(index, version) == CUDA_SUCCESS || Fail(GraphSlots::kNever);
  }

  // Launch them. False: launch all of them plainly; *code says why.
  bool Submit(CUresult* code) noexcept {
    slot_->last = slots_->now_;
    slot_->is_used.store(true, std::memory_order_relaxed);
    *code = CULAUNCH_UNLIKELY(is_new_) ? LaunchNew() : slot_->graph->Launch(stream_);
    return *code == CUDA_SUCCESS || Fail(GraphSlots::kNever);
  }

 private:
  void End() noexcept {
    if (slots_ == nullptr) return;
    if (CULAUNCH_UNLIKELY(is_new_)) slots_->Forget(*slot_);
    slots_->Leave();
    slots_->driver().graphs.Leave();
    slots_ = nullptr;
    context_.Leave();
  }

  // The graph is unusable. It is made again after some calls, or never.
  bool Fail(int calls) noexcept {
    slots_->Forget(*slot_);
    is_new_ = false;
    slot_->calls = calls;
    End();
    return false;
  }

  bool MayMake(int ordinal, int after) noexcept {
    GraphSlots::Slot& slot = *slot_;
    if (slot.graph != nullptr) {  // another one took its place
      slot.graph.reset();
      slot.calls = 0;
    }
    slot.last = slots_->now_;
    if (slot.calls == GraphSlots::kNever || slot.calls++ < after) return false;
    Driver& driver = slots_->driver();
    if (!slots_->IsOfPrimary(stream_, ordinal)) {
      slot.calls = GraphSlots::kNever;
      return false;
    }
    slot.graph.reset(new (std::nothrow) LaunchGraph(driver));
    slot.is_used.store(true, std::memory_order_relaxed);
    if (slot.graph == nullptr ||
        !driver.graphs.Admit({slot.graph.get(), slots_, &slot.is_used, 0})) {
      slot.graph.reset();
      slot.calls = slots_->Rest() ? after : after - GraphSlots::kPatience;
      return false;
    }
    slots_->patience_.store(0, std::memory_order_relaxed);
    ordinal_ = ordinal;
    is_new_ = true;
    return true;
  }

  bool Add(const GraphLaunch& launch) {
    Driver& driver = slots_->driver();
    const DeviceGuard guard(driver, ordinal_);
    const RelaxedCaptureGuard relaxed(driver);
    return (guard.code() == CUDA_SUCCESS && slot_->graph->Add(launch) == CUDA_SUCCESS) ||
           Fail(GraphSlots::kNever);
  }

  // The first launch gives the graph its memory on the device, which a capture elsewhere allows
  // while the mode is relaxed.
  CUresult LaunchNew() noexcept {
    Driver& driver = slots_->driver();
    const DeviceGuard guard(driver, ordinal_);
    const RelaxedCaptureGuard relaxed(driver);
    CUresult code = guard.code();
    if (code == CUDA_SUCCESS) code = slot_->graph->Instantiate();
    is_new_ = code != CUDA_SUCCESS;
    return code == CUDA_SUCCESS ? slot_->graph->Launch(stream_) : code;
  }

  AnyContextGuard context_;
  GraphSlots* slots_ = nullptr;
  GraphSlots::Slot* slot_ = nullptr;
  CUstream stream_ = nullptr;
  int ordinal_ = -1;
  bool is_new_ = false;
};

inline bool Graphs::Admit(Entry entry) {
  const LockGuard lock(mutex_);
  const int64_t now = Milliseconds();
  bool has_room = all_.size() < limit_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < kLooks && !has_room && !all_.empty(); ++i) {
    Entry& next = all_[++hand_ % all_.size()];
    if (next.is_used->exchange(false, std::memory_order_relaxed)) next.unused_since = now;
    if (now - next.unused_since < kIdleMilliseconds || next.slots == entry.slots ||
        !next.slots->TryEnter()) {
      continue;
    }
    GraphSlots* const slots = next.slots;
    {
      const RelaxedCaptureGuard relaxed(slots->driver());
      next.graph->Destroy();
    }
    RemoveLocked(next.graph);
    slots->Leave();
    has_room = true;
  }
  entry.unused_since = now;
  if (has_room) all_.push_back(entry);
  return has_room;
}

inline void Graphs::Drop(const void* kernel) noexcept {
  for (bool is_done = false; !is_done;) {
    is_done = true;
    {
      const LockGuard lock(mutex_);
      for (size_t i = all_.size(); i-- > 0;) {
        const Entry entry = all_[i];
        if (kernel != nullptr && !entry.graph->Uses(kernel)) continue;
        if (!entry.slots->TryEnter()) {  // a launch is under way
          is_done = false;
          continue;
        }
        const RelaxedCaptureGuard relaxed(entry.slots->driver());
        entry.graph->Destroy();
        RemoveLocked(entry.graph);
        entry.slots->Leave();
      }
    }
#if !defined(_WIN32)
    if (!is_done) sched_yield();
#endif
  }
}

CULAUNCH_NAMESPACE_END
