#include "formats/itanium/spelling.h"

#include "formats/itanium/packs.h"
#include "formats/itanium/parser.h"

namespace itanium {

namespace {

// Names of template-heavy kernels reach some ten thousand letters.
constexpr size_t kLongest = 1 << 15;

// A static kernel's own name: with -rdc, nvcc puts an identifier of the file before it.
//
// __nv_static_<length of the identifier>_<identifier>_<name>
std::string_view WithoutFile(std::string_view name) {
  constexpr std::string_view kStatic = "__nv_static_";
  constexpr size_t kMostDigits = 5;
  if (name.compare(0, kStatic.size(), kStatic) != 0) return name;
  size_t length = 0;
  size_t at = kStatic.size();
  while (at < name.size() && IsDigit(name[at])) {
    length = 10 * length + static_cast<size_t>(name[at++] - '0');
    if (at > kStatic.size() + kMostDigits) return name;
  }
  if (at == kStatic.size() || at == name.size() || name[at] != '_') return name;
  at += length + 2;
  return at < name.size() ? name.substr(at) : std::string_view();
}

std::vector<std::string> SpellEach(const List& params) {
  std::vector<std::string> types;
  Printer out(true);
  for (const Node* param : params) {
    const auto* const expansion =
        param->kind() == Kind::kExpansion ? static_cast<const Expansion*>(param) : nullptr;
    if (expansion == nullptr || expansion->count() < 0) {
      param->Print(out);
      types.push_back(out.TakeText());
      continue;
    }
    for (out.pack_index = 0; out.pack_index < expansion->count(); ++out.pack_index) {
      expansion->pattern()->Print(out);
      types.push_back(out.TakeText());
    }
    out.pack_index = Printer::kAll;
  }
  return types;
}

}  // namespace

std::optional<Spelling> Spell(std::string_view name, bool with_params) {
  name = WithoutFile(name);
  if (name.size() > kLongest || name.compare(0, 2, "_Z") != 0) return {};
  Arena arena;
  try {
    const Node* const found = Parser(name, arena).Whole();
    Printer out;
    found->Print(out);
    Spelling spelling{out.TakeText(), {}};
    if (with_params && found->kind() == Kind::kFunction) {
      spelling.params = SpellEach(static_cast<const Function*>(found)->params());
    }
    return spelling;
  } catch (const Unsupported&) {
    return {};
  }
}

}  // namespace itanium
