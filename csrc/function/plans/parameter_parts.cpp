#include "function/plans/parameter_parts.h"

#include <algorithm>
#include <cstring>

#include "arguments/views/element_types.h"
#include "formats/half.h"

namespace function {

bool IsFixed(const Part& part) {
  return part.source != Source::kArray && part.source != Source::kTensorMap &&
         std::all_of(part.fields.begin(), part.fields.end(), IsFixed);
}

bool CanBeReady(const Launch& launch) {
  return (launch.flags & ~launch_flag::shared_memory) == 0 &&
         std::all_of(launch.parts.begin(), launch.parts.end(), [](const Part& part) {
           return part.source == Source::kArray || IsFixed(part);
         });
}

void FillFixed(const Part& part, const Word* registers, unsigned char* target) {
  const Word value = part.index >= 0 ? registers[part.index] : 0;
  if (part.source == Source::kInt) {
    std::memcpy(target, &value, part.size);  // little-endian: the low bytes
  } else if (part.source == Source::kFloat) {
    const double number = AsFloat(value);
    const auto narrow = static_cast<float>(number);
    constexpr uint8_t kBfloat = 4;
    if (part.size == sizeof narrow) {
      std::memcpy(target, &narrow, sizeof narrow);
    } else if (part.size == sizeof number) {
      std::memcpy(target, &number, sizeof number);
    } else {
      const uint16_t bits = part.code == kBfloat ? Bfloat16Bits(number) : Float16Bits(number);
      std::memcpy(target, &bits, sizeof bits);
    }
  } else if (part.source == Source::kBool) {
    *target = value != 0 ? 1 : 0;
  } else if (part.source == Source::kNull) {
    std::memset(target, 0, part.size);
  } else {
    std::memcpy(target, part.bytes.data(), part.size);
    for (const Part& field : part.fields) FillFixed(field, registers, target + field.offset);
  }
}

bool BytesOf(const Effect& effect, const Word* registers, size_t* bytes) {
  int64_t size = operands::ItemSize(effect.number);
  bool is_empty = false;
  bool fits = true;
  for (const int32_t index : effect.shape) {
    const Word dim = registers[index];
    is_empty = is_empty || dim == 0;
    fits = fits && !__builtin_mul_overflow(size, std::max<Word>(dim, 1), &size);
  }
  *bytes = is_empty ? 0 : static_cast<size_t>(size);
  return fits;
}

}  // namespace function
