#include "formats/itanium/tables.h"

namespace itanium {

namespace {

struct Spelled {
  char letter;
  std::string_view text;
};

constexpr Spelled kBuiltins[] = {
    {'v', "void"},        {'w', "wchar_t"},
    {'b', "bool"},        {'c', "char"},
    {'a', "signed char"}, {'h', "unsigned char"},
    {'s', "short"},       {'t', "unsigned short"},
    {'i', "int"},         {'j', "unsigned int"},
    {'l', "long"},        {'m', "unsigned long"},
    {'x', "long long"},   {'y', "unsigned long long"},
    {'n', "__int128"},    {'o', "unsigned __int128"},
    {'f', "float"},       {'d', "double"},
    {'e', "long double"}, {'g', "__float128"},
    {'z', "..."},
};

constexpr Spelled kLongBuiltins[] = {
    {'a', "auto"},      {'c', "decltype(auto)"}, {'n', "decltype(nullptr)"}, {'h', "half"},
    {'i', "char32_t"},  {'s', "char16_t"},       {'u', "char8_t"},           {'f', "decimal32"},
    {'d', "decimal64"}, {'e', "decimal128"},
};

constexpr Spelled kStandard[] = {
    {'t', "std"},
    {'a', "std::allocator"},
    {'b', "std::basic_string"},
    {'s', "std::basic_string<char, std::char_traits<char>, std::allocator<char> >"},
    {'i', "std::basic_istream<char, std::char_traits<char> >"},
    {'o', "std::basic_ostream<char, std::char_traits<char> >"},
    {'d', "std::basic_iostream<char, std::char_traits<char> >"},
};

constexpr Operator kOperators[] = {
    {"nw", "new", 0}, {"na", "new[]", 0}, {"dl", "delete", 0}, {"da", "delete[]", 0},
    {"ps", "+", 1},   {"ng", "-", 1},     {"ad", "&", 1},      {"de", "*", 1},
    {"co", "~", 1},   {"nt", "!", 1},     {"pl", "+", 2},      {"mi", "-", 2},
    {"ml", "*", 2},   {"dv", "/", 2},     {"rm", "%", 2},      {"an", "&", 2},
    {"or", "|", 2},   {"eo", "^", 2},     {"aS", "=", 2},      {"pL", "+=", 2},
    {"mI", "-=", 2},  {"mL", "*=", 2},    {"dV", "/=", 2},     {"rM", "%=", 2},
    {"aN", "&=", 2},  {"oR", "|=", 2},    {"eO", "^=", 2},     {"ls", "<<", 2},
    {"rs", ">>", 2},  {"lS", "<<=", 2},   {"rS", ">>=", 2},    {"eq", "==", 2},
    {"ne", "!=", 2},  {"lt", "<", 2},     {"gt", ">", 2},      {"le", "<=", 2},
    {"ge", ">=", 2},  {"ss", "<=>", 2},   {"aa", "&&", 2},     {"oo", "||", 2},
    {"pp", "++", 0},  {"mm", "--", 0},    {"cm", ",", 2},      {"pm", "->*", 2},
    {"pt", "->", 0},  {"cl", "()", 0},    {"ix", "[]", 0},     {"qu", "?", 0},
};

template <size_t kSize>
std::string_view Find(const Spelled (&table)[kSize], char letter) {
  for (const Spelled& entry : table) {
    if (entry.letter == letter) return entry.text;
  }
  return {};
}

}  // namespace

std::string_view Builtin(char letter) { return Find(kBuiltins, letter); }

std::string_view LongBuiltin(char letter) { return Find(kLongBuiltins, letter); }

std::string_view Standard(char letter) { return Find(kStandard, letter); }

const char* LiteralSuffix(char letter) {
  switch (letter) {
    case 'i':
      return "";
    case 'j':
      return "u";
    case 'l':
      return "l";
    case 'm':
      return "ul";
    case 'x':
      return "ll";
    case 'y':
      return "ull";
  }
  return nullptr;
}

std::string_view Cast(std::string_view code) {
  if (code == "sc") return "static_cast";
  if (code == "cc") return "const_cast";
  if (code == "rc") return "reinterpret_cast";
  if (code == "dc") return "dynamic_cast";
  return {};
}

const Operator* FindOperator(std::string_view code) {
  for (const Operator& entry : kOperators) {
    if (entry.code == code) return &entry;
  }
  return nullptr;
}

}  // namespace itanium
