#include "function/plans/replay.h"

#include <culaunch/demangle.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <new>

#include "arguments/views/element_types.h"
#include "function/plans/number_slice.h"
#include "function/plans/parameter_parts.h"
#include "function/plans/plan.h"

namespace function {

namespace {

constexpr size_t kRound = 16;

constexpr size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

CUlaunchConfig ConfigOf(const Launch& launch, const Word* registers) {
  const auto dim = [&](int i) { return static_cast<unsigned>(registers[launch.dims[i]]); };
  CUlaunchConfig config = {};
  config.gridDimX = dim(0);
  config.gridDimY = dim(1);
  config.gridDimZ = dim(2);
  config.blockDimX = dim(3);
  config.blockDimY = dim(4);
  config.blockDimZ = dim(5);
  if (launch.shared_memory >= 0) {
    config.sharedMemBytes = static_cast<unsigned>(registers[launch.shared_memory]);
  }
  return config;
}

// Hands out pieces of a buffer. Without a buffer, it only adds up their sizes.
class Pieces {
 public:
  explicit Pieces(char* room) : room_(room) {}

  template <class T>
  T* Take(size_t count) {
    char* piece = room_ + used_;
    used_ += RoundUp(count * sizeof(T), kRound);
    return reinterpret_cast<T*>(piece);
  }
  size_t used() const { return used_; }

 private:
  char* room_;
  size_t used_ = 0;
};

size_t BytesOfLaunch(const Launch& launch) {
  Pieces pieces(nullptr);
  pieces.Take<ReadyLaunch>(1);
  pieces.Take<int32_t>(launch.parts.size());
  pieces.Take<void*>(launch.parts.size());
  pieces.Take<unsigned char>(launch.kernel->bytes);
  return pieces.used();
}

ReadyLaunch* MakeLaunch(const Launch& launch, const Word* registers, char* room) {
  Pieces pieces(room);
  auto* ready = new (pieces.Take<ReadyLaunch>(1)) ReadyLaunch;
  auto* sources = pieces.Take<int32_t>(launch.parts.size());
  auto** pointers = pieces.Take<void*>(launch.parts.size());
  ready->kernel = launch.kernel->state;
  ready->config = ConfigOf(launch, registers);
  ready->count = launch.parts.size();
  ready->sources = sources;
  ready->pointers = pointers;
  ready->size = launch.kernel->bytes;
  ready->bytes = pieces.Take<unsigned char>(ready->size);
  std::fill(ready->bytes, ready->bytes + ready->size, static_cast<unsigned char>(0));
  for (const Part& part : launch.parts) {
    *pointers++ = ready->bytes + part.offset;
    if (part.source == Source::kArray) {
      *sources++ = part.index;
      continue;
    }
    FillFixed(part, registers, ready->bytes + part.offset);
    *sources++ = ~static_cast<int32_t>(part.offset);
  }
  return ready;
}

size_t BytesOfMemory(const Effect& effect) {
  Pieces pieces(nullptr);
  pieces.Take<ReadyMemory>(1);
  pieces.Take<int64_t>(effect.shape.size());
  return pieces.used();
}

ReadyMemory* MakeMemory(const Effect& effect, const Word* registers, char* room) {
  Pieces pieces(room);
  auto* memory = new (pieces.Take<ReadyMemory>(1)) ReadyMemory;
  auto* shape = pieces.Take<int64_t>(effect.shape.size());
  BytesOf(effect, registers, &memory->bytes);
  memory->shape = shape;
  memory->rank = static_cast<int32_t>(effect.shape.size());
  for (const int32_t index : effect.shape) *shape++ = registers[index];
  return memory;
}

size_t BytesOfEffect(const Effect& effect) {
  if (effect.code == EffectCode::kAllocate) return BytesOfMemory(effect);
  if (effect.code == EffectCode::kLaunch && CanBeReady(*effect.launch)) {
    return BytesOfLaunch(*effect.launch);
  }
  return 0;
}

}  // namespace

Program::~Program() {
  if (replay != nullptr) replay->Drop();
}

Replay* Replay::Make(const Program& program, const Word* inputs, const Word* registers,
                     int32_t leaf_number, Replay* old) {
  const Block& leaf = program.blocks[static_cast<size_t>(leaf_number)];
  const size_t input_count = program.inputs.size();
  size_t bytes = RoundUp(input_count * sizeof(Word), kRound) +
                 RoundUp(program.registers * sizeof(Word), kRound) +
                 RoundUp(leaf.effects.size() * sizeof(ReplayStep), kRound);
  for (const Effect& effect : leaf.effects) bytes += BytesOfEffect(effect);
  Replay* replay = old;
  if (old == nullptr || old->users_ > 1 || old->bytes_ < bytes) {
    replay = new Replay;
    replay->room_.reset(new Word[bytes / sizeof(Word)]);
    replay->bytes_ = bytes;
    replay->constants_ = Ref::Borrow(program.constants);
    replay->texts_ = Ref::Borrow(program.texts);
  }
  Pieces pieces(reinterpret_cast<char*>(replay->room_.get()));
  static std::atomic<uint64_t> next_id{1};
  replay->id_ = next_id.fetch_add(1, std::memory_order_relaxed);
  replay->is_current_ = true;
  replay->changing_.clear();
  replay->slice_ = nullptr;
  auto* own_inputs = pieces.Take<Word>(input_count);
  replay->steps_ = replay->steps_end_ = pieces.Take<ReplayStep>(leaf.effects.size());
  std::copy(inputs, inputs + input_count, own_inputs);
  for (const Effect& effect : leaf.effects) {
    if (IsSkipped(effect, registers)) continue;
    auto* step = new (replay->steps_end_++)
        ReplayStep{effect.code, effect.number, effect.array, effect.source};
    step->effect = &effect;
    step->text = program.Text(effect.text);
    char* room = pieces.Take<char>(BytesOfEffect(effect));
    if (effect.code == EffectCode::kView) {
      step->offset = registers[effect.value];
    } else if (effect.code == EffectCode::kAllocate) {
      step->memory = MakeMemory(effect, registers, room);
    } else if (effect.code == EffectCode::kLaunch && CanBeReady(*effect.launch)) {
      step->launch = MakeLaunch(*effect.launch, registers, room);
    }
  }
  auto* own_registers = pieces.Take<Word>(program.registers);
  std::copy(registers, registers + program.registers, own_registers);
  replay->inputs_ = own_inputs;
  replay->registers_ = own_registers;
  replay->leaf_ = leaf_number;
  replay->PlaceScratch();
  replay->FindChain(program);
  replay->is_quick_ = replay->FindResult(program);
  return replay;
}

bool Replay::FindResult(const Program& program) {
  const Effect& last = *steps_end_[-1].effect;
  const auto kind = static_cast<Value>(last.result[0]);
  result_ = kind == Value::kArray ? static_cast<int32_t>(last.result[1]) : kNothing;
  const bool is_given = result_ < static_cast<int32_t>(program.argument_arrays);
  return (kind == Value::kNone || kind == Value::kArray) && program.arrays <= kQuickArrays &&
         program.driver != nullptr && AreQuick(is_given ? kNothing : result_);
}

// Found once for a leaf of a program.
static const NumberSlice& SliceOf(const Program& program, int32_t leaf) {
  std::shared_ptr<const NumberSlice>& slice = const_cast<Program&>(program).slices[leaf];
  if (slice == nullptr) slice = std::make_shared<NumberSlice>(NumberSlice::Of(program, leaf));
  return *slice;
}

bool Replay::Follow(const Program& program, const NumberChange* changes, size_t count) {
  if (users_ > 1) return false;  // a call uses it
  if (slice_ == nullptr) slice_ = &SliceOf(program, leaf_);
  const NumberSlice& slice = *slice_;
  if (!slice.is_possible) return false;
  for (size_t i = 0; i < count; ++i) inputs_[changes[i].input] = changes[i].value;
  is_current_ = RunSlice(program, slice, inputs_, registers_) && TakeGrids(program, slice);
  if (!is_current_) return false;
  if (changing_.empty()) FindChanging(program, slice);
  for (const Changing& one : changing_) {
    unsigned char bytes[kWidest];
    if (one.part->size > kWidest) {
      FillFixed(*one.part, registers_, one.target);
      ++one.launch->version;
      continue;
    }
    FillFixed(*one.part, registers_, bytes);
    if (std::memcmp(bytes, one.target, one.part->size) == 0) continue;
    std::memcpy(one.target, bytes, one.part->size);
    ++one.launch->version;
  }
  return true;
}

// The ready launch of one of the leaf's effects; null: the effect is skipped.
ReadyLaunch* Replay::LaunchOf(const Effect& effect) const {
  for (const ReplayStep* step = steps_; step != steps_end_; ++step) {
    if (step->effect == &effect) return const_cast<ReadyLaunch*>(step->launch);
  }
  return nullptr;
}

void Replay::FindChanging(const Program& program, const NumberSlice& slice) {
  const std::vector<Effect>& effects = program.blocks[static_cast<size_t>(leaf_)].effects;
  for (const NumberSlice::LaunchPart& one : slice.parts) {
    ReadyLaunch* const launch = LaunchOf(effects[one.effect]);
    if (launch == nullptr) continue;
    const Part& part = effects[one.effect].launch->parts[one.part];
    changing_.push_back({launch, &part, launch->bytes + part.offset});
  }
}

// False: not every device accepts a grid. The general path reports the error.
bool Replay::TakeGrids(const Program& program, const NumberSlice& slice) {
  const std::vector<Effect>& effects = program.blocks[static_cast<size_t>(leaf_)].effects;
  for (const uint32_t index : slice.grids) {
    ReadyLaunch* const launch = LaunchOf(effects[index]);
    if (launch == nullptr) continue;
    const int32_t* const dims = effects[index].launch->dims;
    const Word x = registers_[dims[0]];
    const Word y = registers_[dims[1]];
    const Word z = registers_[dims[2]];
    if (x < 1 || x > INT32_MAX || y < 1 || y > UINT16_MAX || z < 1 || z > UINT16_MAX) return false;
    CUlaunchConfig& config = launch->config;
    if (config.gridDimX == x && config.gridDimY == y && config.gridDimZ == z) continue;
    config.gridDimX = static_cast<unsigned>(x);
    config.gridDimY = static_cast<unsigned>(y);
    config.gridDimZ = static_cast<unsigned>(z);
    ++launch->version;
  }
  return true;
}

void Replay::FindChain(const Program& program) {
  graphs_.reset();
  launches_.clear();
  uses_.clear();
  places_.assign(program.arrays, nullptr);
  if (program.driver == nullptr) return;
  size_t launches = 0;
  path_ = 0;
  for (const ReplayStep* step = steps_; step != steps_end_ - 1; ++step) {
    if (step->code == EffectCode::kLaunch) {
      if (step->launch == nullptr) return;
      path_ = (path_ ^ reinterpret_cast<uintptr_t>(step->launch->kernel)) * 0x9e3779b97f4a7c15;
      ++launches;
      auto* launch = const_cast<ReadyLaunch*>(step->launch);
      launches_.push_back(launch);
      for (size_t i = 0; i < launch->count; ++i) {
        if (launch->sources[i] < 0) continue;
        uses_.push_back({launch->sources[i], launch, static_cast<char*>(launch->pointers[i])});
      }
    } else if (step->code == EffectCode::kMemset || step->code == EffectCode::kCall) {
      return;  // it may depend on the previous launch
    }
  }
  if (launches < 2) return;
  std::stable_sort(uses_.begin(), uses_.end(),
                   [](const ArrayUse& a, const ArrayUse& b) { return a.array < b.array; });
  std::shared_ptr<culaunch::GraphSlots>& graphs = const_cast<Program&>(program).graphs;
  if (graphs == nullptr) graphs = std::make_shared<culaunch::GraphSlots>(*program.driver);
  graphs_ = graphs;
}

const ReplayStep* Replay::Blamed(const culaunch::Driver& driver, CUresult code) const {
  const std::string text = driver.Describe(code);
  const ReplayStep* first = nullptr;
  for (const ReplayStep* step = begin(); step != end(); ++step) {
    if (step->code != EffectCode::kLaunch) continue;
    const std::string& name = step->launch->kernel->name();
    if (text.find(name) != std::string::npos ||
        text.find(culaunch::Demangle(name)) != std::string::npos) {
      return step;
    }
    if (first == nullptr) first = step;
  }
  return first;
}

bool Replay::AreQuick(int32_t result) const {
  bool is_made = result == kNothing;
  for (const ReplayStep* step = steps_; step != steps_end_ - 1; ++step) {
    if (step->code == EffectCode::kAllocate && !step->effect->zeros) {
      is_made = is_made || step->array == result;
    } else if (step->code != EffectCode::kView &&
               (step->code != EffectCode::kLaunch || step->launch == nullptr)) {
      return false;
    }
  }
  return is_made;
}

// Give each of the leaf's own arrays a place in one block. A single array, or an empty one, has its
// own allocation.
void Replay::PlaceScratch() {
  size_t end = 0;
  int count = 0;
  for (ReplayStep* step = steps_; step != steps_end_; ++step) {
    if (step->code != EffectCode::kAllocate || !step->effect->is_scratch) continue;
    const size_t bytes = step->memory->bytes;
    if (bytes == 0 || bytes > kMostScratch || end + bytes > kMostScratch) continue;
    const size_t next = end + bytes;
    step->offset = static_cast<int64_t>(end);
    end = RoundUp(next, kAlignment);
    ++count;
  }
  scratch_bytes_ = count > 1 ? end : 0;
}

}  // namespace function
