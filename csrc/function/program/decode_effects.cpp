// The effects of a program's leaves, except launches.
#include <algorithm>

#include "arguments/operands.h"
#include "function/program/decoder.h"

namespace function {

namespace {

const char* NameOfEffect(EffectCode code) {
  static constexpr const char* names[] = {"",       "ALLOCATE", "VIEW",  "MEMSET",
                                          "LAUNCH", "CALL",     "RETURN"};
  return names[static_cast<int>(code)];
}

}  // namespace

void Decoder::DecodeEffects(Block& block, int64_t count, WordReader& reader) {
  block.condition = -1;
  array_states_.assign(program_.arrays, ArrayState::kUndefined);
  base_.assign(program_.arrays, -1);
  is_shown_.assign(program_.arrays, 0);
  for (size_t i = 0; i < program_.argument_arrays; ++i) {
    array_states_[i] = ArrayState::kGiven;
    base_[i] = static_cast<int32_t>(i);
  }
  if (count < 1 || static_cast<uint64_t>(count) > reader.left()) throw Wrong("it has no RETURN");
  objects_.clear();
  for (int64_t i = 0; i < count; ++i) {
    const auto head = static_cast<uint64_t>(reader.Next());
    WordReader part = reader.Take(static_cast<int64_t>(head >> 32) - 1);
    const uint64_t code = head & 0xffffffff;
    if (code < 1 || code > 6) throw Wrong("there is no effect " + std::to_string(code));
    Effect effect;
    effect.code = static_cast<EffectCode>(code);
    if ((effect.code == EffectCode::kReturn) != (i == count - 1)) {
      throw Wrong("RETURN is not the last effect");
    }
    DecodeEffect(&effect, part);
    const bool has_own = effect.code == EffectCode::kLaunch || effect.code == EffectCode::kReturn;
    if (all_effects_have_texts_ && !has_own) effect.text = Text(part);
    if (!part.is_done()) {
      throw Wrong(std::string(NameOfEffect(effect.code)) + " has the wrong number of words");
    }
    block.effects.push_back(std::move(effect));
  }
  for (Effect& effect : block.effects) {
    effect.is_scratch =
        effect.code == EffectCode::kAllocate && is_shown_[static_cast<size_t>(effect.array)] == 0;
  }
  // The program's constant arrays are read before any effect.
  std::vector<Effect> all;
  for (const auto& [constant, array] : objects_) {
    Effect effect;
    effect.code = EffectCode::kConstantArray;
    effect.source = static_cast<int32_t>(constant);
    effect.array = array;
    all.push_back(std::move(effect));
  }
  all.insert(all.end(), std::make_move_iterator(block.effects.begin()),
             std::make_move_iterator(block.effects.end()));
  block.effects = std::move(all);
  most_objects_ = std::max(most_objects_, objects_.size());
}

void Decoder::DecodeEffect(Effect* effect, WordReader& reader) {
  switch (effect->code) {
    case EffectCode::kAllocate:
      effect->array = NewArray(reader, ArrayState::kAllocated);
      effect->number = static_cast<uint8_t>(reader.NextBelow(operands::kAllTypes, "dtype"));
      effect->zeros = reader.NextBelow(2, "fill") == 1;
      Registers(reader, reader.NextBelow(operands::kMaxDims + 1, "rank"), &effect->shape);
      return;
    case EffectCode::kView: {
      WordReader copy = reader;
      copy.Next();
      effect->source = Array(copy);
      effect->array = NewArray(reader, ArrayState::kView, effect->source);
      reader.Next();
      effect->value = Int(reader);
      effect->number = static_cast<uint8_t>(reader.NextBelow(operands::kAllTypes, "dtype"));
      const int64_t rank = reader.NextBelow(operands::kMaxDims + 1, "rank");
      Registers(reader, rank, &effect->shape);
      Registers(reader, rank, &effect->strides);
      return;
    }
    case EffectCode::kMemset:
      effect->array = Array(reader);
      NeedExtent(effect->array);
      program_.computes = true;
      effect->value = Int(reader);
      effect->bytes = Int(reader);
      effect->predicate = Predicate(reader);
      return;
    case EffectCode::kLaunch:
      program_.computes = true;
      DecodeLaunch(effect, reader);
      return;
    case EffectCode::kCall:
      program_.computes = true;
      DecodeCall(effect, reader);
      return;
    default: {
      WordReader copy = reader;
      DecodeResult(reader, 0);
      while (!copy.is_done()) effect->result.push_back(copy.Next());
      return;
    }
  }
}

void Decoder::DecodeCall(Effect* effect, WordReader& reader) {
  effect->call = std::make_unique<CallRecord>();
  CallRecord& call = *effect->call;
  call.callable = Constant(reader);
  effect->predicate = Predicate(reader);
  const int64_t count = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "arguments");
  for (int64_t i = 0; i < count; ++i) {
    const auto kind = static_cast<Value>(
        reader.NextBelow(static_cast<int64_t>(Value::kConstant) + 1, "argument"));
    const bool is_none = kind == Value::kNone;
    call.arguments.emplace_back(
        kind, is_none ? static_cast<int32_t>(reader.Next()) : DecodeValue(kind, reader));
  }
  const int64_t outputs = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "outputs");
  for (int64_t i = 0; i < outputs; ++i) {
    call.outputs.push_back(ShownArray(reader));
  }
}

int32_t Decoder::DecodeValue(Value kind, WordReader& reader) {
  switch (kind) {
    case Value::kInt:
      return Int(reader);
    case Value::kFloat:
      return Register(reader, RegisterType::kFloat);
    case Value::kBool:
      return Register(reader, RegisterType::kBool);
    case Value::kArray:
      return ShownArray(reader);
    case Value::kArgument:
      return static_cast<int32_t>(NextParameter(reader));
    default:
      return static_cast<int32_t>(reader.NextBelow(constants_, "constant"));
  }
}

void Decoder::DecodeResult(WordReader& reader, int depth) {
  if (depth > kMostNesting) throw Wrong("its result is nested too deep");
  const auto kind = static_cast<Value>(
      reader.NextBelow(static_cast<int64_t>(Value::kElement) + 1, "kind of result"));
  if (kind == Value::kNone) return;
  if (kind == Value::kElement) {
    const auto parameter = static_cast<int32_t>(NextParameter(reader));
    const auto element = static_cast<int32_t>(reader.NextBelow(kMostArrays, "element"));
    program_.elements.emplace_back(parameter, element);
    return;
  }
  if (kind < Value::kTuple) {
    DecodeValue(kind, reader);
    if (kind == Value::kArray) program_.computes = true;
    return;
  }
  if (kind == Value::kCalled) reader.NextBelow(constants_, "constant");
  const int64_t count = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "items");
  for (int64_t i = 0; i < count; ++i) {
    if (kind == Value::kDict && Text(reader) < 0) throw Wrong("a key has no text");
    DecodeResult(reader, depth + 1);
  }
}

int32_t Decoder::Array(WordReader& reader) {
  const int64_t index = reader.NextBelow(static_cast<int64_t>(program_.arrays), "array");
  if (array_states_[static_cast<size_t>(index)] == ArrayState::kUndefined) {
    throw Wrong("array " + std::to_string(index) + " is used before it is defined");
  }
  return static_cast<int32_t>(index);
}

int32_t Decoder::NewArray(WordReader& reader, ArrayState state, int32_t source) {
  const int64_t index = reader.NextBelow(static_cast<int64_t>(program_.arrays), "array");
  const auto at = static_cast<size_t>(index);
  if (array_states_[at] != ArrayState::kUndefined) {
    throw Wrong("array " + std::to_string(index) + " is defined twice");
  }
  array_states_[at] = state;
  base_[at] = source >= 0 ? base_[static_cast<size_t>(source)] : static_cast<int32_t>(index);
  return static_cast<int32_t>(index);
}

int32_t Decoder::ShownArray(WordReader& reader) {
  const int32_t array = Array(reader);
  NeedExtent(array);
  is_shown_[static_cast<size_t>(base_[static_cast<size_t>(array)])] = 1;
  return array;
}

void Decoder::NeedExtent(int32_t array) {
  const auto base = static_cast<size_t>(base_[static_cast<size_t>(array)]);
  if (base < program_.argument_arrays) program_.of_arrays[base].needs_extent = true;
}

PyObject* Decoder::Constant(WordReader& reader) {
  return PyTuple_GetItem(program_.constants,
                         static_cast<Py_ssize_t>(reader.NextBelow(constants_, "constant")));
}

void Decoder::Registers(WordReader& reader, int64_t count, std::vector<int32_t>* registers) {
  for (int64_t i = 0; i < count; ++i) registers->push_back(Int(reader));
}

int32_t Decoder::ObjectArray(WordReader& reader) {
  const int64_t constant = reader.NextBelow(constants_, "constant");
  for (const auto& [known, array] : objects_) {
    if (known == constant) return array;
  }
  const auto array = static_cast<int32_t>(program_.arrays + objects_.size());
  objects_.emplace_back(constant, array);
  return array;
}

}  // namespace function
