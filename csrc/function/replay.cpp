#include "function/replay.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "arguments/element_types.h"
#include "function/parts.h"

namespace function {

namespace {

constexpr size_t kRound = 16;

constexpr size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

bool IsSkipped(const Effect& effect, const Word* registers) {
  return effect.predicate >= 0 && registers[effect.predicate] == 0;
}

// Whether a launch's parameters are numbers and addresses, and its configuration needs no list of
// attributes: the others are made at each call.
bool CanBeReady(const Launch& launch) {
  return (launch.flags & ~kHasSharedMemory) == 0 &&
         std::all_of(launch.parts.begin(), launch.parts.end(), [](const Part& part) {
           return part.source == Source::kArray || IsFixed(part);
         });
}

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

// Gives away pieces of a room; without one it counts what they need.
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
  pieces.Take<unsigned char>(launch.kernel->bytes);
  return pieces.used();
}

ReadyLaunch* MakeLaunch(const Launch& launch, PyObject* text, const Word* registers, char* room) {
  Pieces pieces(room);
  auto* ready = new (pieces.Take<ReadyLaunch>(1)) ReadyLaunch;
  auto* sources = pieces.Take<int32_t>(launch.parts.size());
  ready->kernel = launch.kernel->state;
  ready->config = ConfigOf(launch, registers);
  ready->count = launch.parts.size();
  ready->sources = sources;
  ready->text = text;
  ready->bytes = pieces.Take<unsigned char>(launch.kernel->bytes);
  for (const Part& part : launch.parts) {
    if (part.source == Source::kArray) {
      *sources++ = part.index;
      continue;
    }
    FillFixed(part, registers, ready->bytes + part.offset);
    *sources++ = ~static_cast<int32_t>(part.offset);
  }
  return ready;
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
  for (const Effect& effect : leaf.effects) {
    if (effect.code == EffectCode::kLaunch && CanBeReady(*effect.launch)) {
      bytes += BytesOfLaunch(*effect.launch);
    }
  }
  Replay* replay = old;
  if (old == nullptr || old->users_ > 1 || old->bytes_ < bytes) {
    replay = new Replay;
    replay->room_.reset(new Word[bytes / sizeof(Word)]);
    replay->bytes_ = bytes;
    replay->constants_ = Ref::Borrow(program.constants);
    replay->texts_ = Ref::Borrow(program.texts);
  }
  Pieces pieces(reinterpret_cast<char*>(replay->room_.get()));
  auto* own_inputs = pieces.Take<Word>(input_count);
  replay->steps_ = replay->steps_end_ = pieces.Take<ReplayStep>(leaf.effects.size());
  std::copy(inputs, inputs + input_count, own_inputs);
  for (const Effect& effect : leaf.effects) {
    if (IsSkipped(effect, registers)) continue;
    auto* step = new (replay->steps_end_++) ReplayStep{effect.code, effect.array, effect.source};
    step->effect = &effect;
    if (effect.code == EffectCode::kView) step->offset = registers[effect.value];
    if (effect.code == EffectCode::kLaunch && CanBeReady(*effect.launch)) {
      step->launch = MakeLaunch(*effect.launch, program.Text(effect.text), registers,
                                pieces.Take<char>(BytesOfLaunch(*effect.launch)));
    }
  }
  auto* own_registers = pieces.Take<Word>(program.registers);
  std::copy(registers, registers + program.registers, own_registers);
  replay->inputs_ = own_inputs;
  replay->registers_ = own_registers;
  replay->leaf_ = leaf_number;
  replay->PlaceScratch();
  replay->is_quick_ = replay->FindResult(program);
  return replay;
}

// Whether there is nothing but launches that are ready, and a result that needs no making.
bool Replay::FindResult(const Program& program) {
  const ReplayStep* step = steps_;
  while (step->code == EffectCode::kLaunch && step->launch != nullptr) ++step;
  if (step == steps_ || step->code != EffectCode::kReturn ||
      program.argument_arrays > kQuickArrays) {
    return false;
  }
  const std::vector<Word>& result = step->effect->result;
  const auto kind = static_cast<Value>(result[0]);
  result_ = kind == Value::kArray ? static_cast<int32_t>(result[1]) : kNothing;
  return kind == Value::kNone ||
         (kind == Value::kArray && result_ < static_cast<int32_t>(program.argument_arrays));
}

// Give each array that is the leaf's own a place in one block. What is alone is allocated as it is,
// and so is what is empty.
void Replay::PlaceScratch() {
  size_t end = 0;
  int count = 0;
  for (ReplayStep* step = steps_; step != steps_end_; ++step) {
    size_t bytes = 0;
    if (step->code != EffectCode::kAllocate || !step->effect->is_scratch ||
        !BytesOf(*step->effect, registers_, &bytes) || bytes == 0) {
      continue;
    }
    size_t next = 0;
    if (__builtin_add_overflow(end, bytes, &next) || next > kMostScratch) continue;
    step->offset = static_cast<int64_t>(end);
    end = RoundUp(next, kAlignment);
    ++count;
  }
  scratch_bytes_ = count > 1 ? end : 0;
}

}  // namespace function
