#include "function/plans/number_slice.h"

#include <algorithm>
#include <cstring>

#include "function/plans/parameter_parts.h"

namespace function {

namespace {

// Finds the registers that depend on numbers, instruction by instruction.
class Tracer {
 public:
  explicit Tracer(const Program& program) : depends_(program.registers) {}

  bool is_possible() const { return is_possible_; }
  bool Depends(int32_t index) const { return index >= 0 && depends_[static_cast<size_t>(index)]; }
  bool DependsOnAny(const std::vector<int32_t>& registers) const {
    return std::any_of(registers.begin(), registers.end(),
                       [this](int32_t index) { return Depends(index); });
  }

  // Whether an instruction depends on numbers. If so, its result does, too.
  bool Take(const Instruction& one) {
    const char* letters = OperandsOf(one.opcode);
    bool depends = one.opcode == Opcode::kARG_I || one.opcode == Opcode::kARG_F;
    const int32_t operands[] = {one.x, one.y, one.z};
    int used = 0;
    for (const char* letter = letters; *letter != '\0' && used < 3; ++letter) {
      if (std::strchr("ifbg", *letter) != nullptr) depends |= Depends(operands[used++]);
    }
    if (!depends) return false;
    // These set a Python error if they fail.
    is_possible_ = is_possible_ && one.opcode != Opcode::kMATH && one.opcode != Opcode::kFPOW &&
                   one.opcode != Opcode::kRAISES;
    if (std::strchr("IFB", letters[0]) != nullptr) depends_[static_cast<size_t>(one.result)] = true;
    return true;
  }

  bool Depends(const Part& part) const {
    const bool is_number = part.source == Source::kInt || part.source == Source::kFloat ||
                           part.source == Source::kBool;
    return (is_number && Depends(part.index)) || DependsOnAny(part.registers) ||
           std::any_of(part.fields.begin(), part.fields.end(),
                       [this](const Part& field) { return Depends(field); });
  }

 private:
  std::vector<bool> depends_;
  bool is_possible_ = true;
};

// The blocks from the first one to a leaf.
std::vector<int32_t> PathTo(const Program& program, int32_t leaf) {
  std::vector<int32_t> path = {leaf};
  // A guard leads to later blocks only.
  for (int32_t i = leaf; i-- > 0;) {
    const Block& block = program.blocks[static_cast<size_t>(i)];
    if (block.condition >= 0 && (block.if_true == path.back() || block.if_false == path.back())) {
      path.push_back(i);
    }
  }
  std::reverse(path.begin(), path.end());
  return path;
}

// Whether a replay cannot update a launch: numbers affect more than its grid and its parameters.
bool IsBound(const Tracer& tracer, const Launch& launch) {
  const int32_t block[] = {launch.dims[3], launch.dims[4], launch.dims[5], launch.shared_memory};
  if (std::any_of(std::begin(block), std::end(block),
                  [&](int32_t index) { return tracer.Depends(index); })) {
    return true;
  }
  return !CanBeReady(launch);
}

}  // namespace

NumberSlice NumberSlice::Of(const Program& program, int32_t leaf) {
  NumberSlice slice;
  Tracer tracer(program);
  const std::vector<int32_t> path = PathTo(program, leaf);
  for (size_t i = 0; i < path.size(); ++i) {
    const Block& block = program.blocks[static_cast<size_t>(path[i])];
    for (uint32_t k = block.first; k < block.end; ++k) {
      if (tracer.Take(program.instructions[k])) slice.instructions.push_back(k);
    }
    if (tracer.Depends(block.condition)) {
      slice.guards.push_back({block.condition, block.if_true == path[i + 1]});
    }
  }
  slice.is_possible = tracer.is_possible();
  const std::vector<Effect>& effects = program.blocks[static_cast<size_t>(leaf)].effects;
  for (uint32_t i = 0; i < effects.size() && slice.is_possible; ++i) {
    const Effect& effect = effects[i];
    const bool is_bound = tracer.Depends(effect.predicate) || tracer.Depends(effect.value) ||
                          tracer.Depends(effect.bytes) || tracer.DependsOnAny(effect.shape) ||
                          tracer.DependsOnAny(effect.strides) || effect.call != nullptr;
    if (is_bound || (effect.launch != nullptr && IsBound(tracer, *effect.launch))) {
      slice.is_possible = false;
      break;
    }
    if (effect.launch == nullptr) continue;
    const Launch& launch = *effect.launch;
    for (uint32_t k = 0; k < launch.parts.size(); ++k) {
      if (tracer.Depends(launch.parts[k])) slice.parts.push_back({i, k});
    }
    const bool has_grid = tracer.Depends(launch.dims[0]) || tracer.Depends(launch.dims[1]) ||
                          tracer.Depends(launch.dims[2]);
    if (has_grid) slice.grids.push_back(i);
  }
  return slice;
}

}  // namespace function
