// The launches of a program, and the parameters of their kernels.
#include "function/program/decoder.h"
#include "launch/kernel_type.h"

namespace function {

namespace {

constexpr int64_t kMostParameterBytes = 1 << 16;

}  // namespace

void Decoder::DecodeLaunch(Effect* effect, WordReader& reader) {
  PyObject* kernel = Constant(reader);
  if (PyObject_TypeCheck(kernel, g_kernel_type) == 0) throw Wrong("a LAUNCH has no kernel");
  effect->launch = std::make_unique<Launch>();
  Launch& launch = *effect->launch;
  launch.kernel = reinterpret_cast<KernelObject*>(kernel);
  launch.flags = reader.NextBelow(kAllFlags + 1, "flags");
  effect->predicate = Predicate(reader);
  const auto read = [&](int64_t flag) {
    const bool has_it = (launch.flags & flag) != 0;
    return has_it || (kFirstFlags & flag) != 0 ? IntOrNone(reader, has_it) : -1;
  };
  for (int32_t& dim : launch.dims) dim = Int(reader);
#define CULAUNCH_DIMS(name, flag, attribute, value, text) \
  for (int32_t& dim : launch.name) dim = read(flag);
#define CULAUNCH_INT(name, flag, attribute, value, text) launch.name = read(flag);
  CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_DIMS, CULAUNCH_NO_LAUNCH_ATTRIBUTE,
                             CULAUNCH_NO_LAUNCH_ATTRIBUTE)
  launch.shared_memory = read(launch_flag::shared_memory);
  CULAUNCH_LAUNCH_ATTRIBUTES(CULAUNCH_NO_LAUNCH_ATTRIBUTE, CULAUNCH_NO_LAUNCH_ATTRIBUTE,
                             CULAUNCH_INT)
#undef CULAUNCH_DIMS
#undef CULAUNCH_INT
  effect->text = Text(reader);
  const int64_t count = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "parameters");
  if (static_cast<size_t>(count) != launch.kernel->count) {
    throw Wrong("a LAUNCH has " + std::to_string(count) + " parameters, but its kernel " +
                std::to_string(launch.kernel->count));
  }
  for (size_t i = 0; i < launch.kernel->count; ++i) {
    const ParameterSlot& slot = launch.kernel->slots[i];
    Part part = DecodePart(reader, kMostParameterBytes, 0);
    if (part.offset != slot.offset || part.size != slot.size) {
      throw Wrong("a LAUNCH puts parameter " + std::to_string(i) + " at a wrong offset");
    }
    launch.parts.push_back(std::move(part));
  }
  culaunch::Driver* driver = &launch.kernel->state->driver();
  if (program_.driver != nullptr && program_.driver != driver) {
    throw Wrong("its kernels belong to two drivers");
  }
  program_.driver = driver;
}

Part Decoder::DecodePart(WordReader& reader, int64_t limit, int depth) {
  if (depth > kMostNesting) throw Wrong("structures are nested too deep");
  Part part;
  part.source =
      static_cast<Source>(reader.NextBelow(static_cast<int64_t>(Source::kObject) + 1, "source"));
  part.offset = static_cast<uint32_t>(reader.NextBelow(limit + 1, "offset"));
  part.size = static_cast<uint32_t>(reader.NextBelow(limit + 1 - part.offset, "size"));
  const uint32_t size = part.size;
  bool is_good = true;
  switch (part.source) {
    case Source::kArray:
      part.index = Array(reader);
      is_good = size == 8;
      break;
    case Source::kInt:
      part.index = Int(reader);
      is_good = size == 1 || size == 2 || size == 4 || size == 8;
      break;
    case Source::kFloat: {
      part.index = Register(reader, RegisterType::kFloat);
      const int64_t code = reader.NextBelow(8, "code");
      const int64_t bits = reader.NextBelow(65, "bits");
      part.code = static_cast<uint8_t>(code);
      is_good = IsFloatType(code, bits) && size * 8 == bits;
      break;
    }
    case Source::kBool:
      part.index = Register(reader, RegisterType::kBool);
      is_good = size == 1;
      break;
    case Source::kNull:
      break;
    case Source::kBytes:
      DecodeBytes(&part, reader, depth);
      break;
    case Source::kTensorMap:
      is_good = size == sizeof(CUtensorMap);
      DecodeMap(&part, reader);
      break;
    case Source::kObject:
      part.index = ObjectArray(reader);
      part.source = Source::kArray;
      is_good = size == 8;
      break;
  }
  if (!is_good)
    throw Wrong("a parameter of " + std::to_string(size) + " bytes cannot have this value");
  return part;
}

void Decoder::DecodeMap(Part* part, WordReader& reader) {
  PyObject* numbers = Constant(reader);
  if (!PyTuple_Check(numbers) || PyTuple_Size(numbers) != 5) {
    throw Wrong("a tensor map's constant is not a tuple of five numbers");
  }
  for (Py_ssize_t i = 0; i < 5; ++i) {
    const long number = PyLong_AsLong(PyTuple_GetItem(numbers, i));
    if (number < 0 || number > 63) {
      PyErr_Clear();
      throw Wrong("a tensor map's constant is not a tuple of five numbers");
    }
    part->map[i] = static_cast<int32_t>(number);
  }
  part->index = Array(reader);
  part->rank = static_cast<int32_t>(reader.NextBelow(6, "rank of a tensor map"));
  if (part->rank == 0) throw Wrong("a tensor map has no dimension");
  Registers(reader, 4 * int64_t{part->rank} - 1, &part->registers);
}

void Decoder::DecodeBytes(Part* part, WordReader& reader, int depth) {
  PyObject* bytes = Constant(reader);
  if (!PyBytes_Check(bytes) || PyBytes_Size(bytes) != static_cast<Py_ssize_t>(part->size)) {
    throw Wrong("a structure's constant is not bytes of its size");
  }
  part->bytes.assign(PyBytes_AsString(bytes), part->size);
  const int64_t fields = reader.NextBelow(static_cast<int64_t>(reader.left()) + 1, "fields");
  for (int64_t i = 0; i < fields; ++i) {
    part->fields.push_back(DecodePart(reader, part->size, depth + 1));
  }
}

}  // namespace function
