"""Fixed spellings of the Itanium C++ ABI."""

from __future__ import annotations

BUILTINS = {
    "v": "void",
    "w": "wchar_t",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "n": "__int128",
    "o": "unsigned __int128",
    "f": "float",
    "d": "double",
    "e": "long double",
    "g": "__float128",
    "z": "...",
}

# After a `D`.
LONG_BUILTINS = {
    "a": "auto",
    "c": "decltype(auto)",
    "n": "decltype(nullptr)",
    "h": "half",
    "i": "char32_t",
    "s": "char16_t",
    "u": "char8_t",
    "f": "decimal32",
    "d": "decimal64",
    "e": "decimal128",
}

# How a literal of the type is written: prefix or suffix; other types are casts.
LITERAL_SUFFIXES = {"i": "", "j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}

# After an `S`.
STANDARD = {
    "t": "std",
    "a": "std::allocator",
    "b": "std::basic_string",
    "s": "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
    "i": "std::basic_istream<char, std::char_traits<char> >",
    "o": "std::basic_ostream<char, std::char_traits<char> >",
    "d": "std::basic_iostream<char, std::char_traits<char> >",
}

# Code to (spelling, operands); no operands where an expression of it is not supported.
OPERATORS = {
    "nw": ("new", 0),
    "na": ("new[]", 0),
    "dl": ("delete", 0),
    "da": ("delete[]", 0),
    "ps": ("+", 1),
    "ng": ("-", 1),
    "ad": ("&", 1),
    "de": ("*", 1),
    "co": ("~", 1),
    "nt": ("!", 1),
    "pl": ("+", 2),
    "mi": ("-", 2),
    "ml": ("*", 2),
    "dv": ("/", 2),
    "rm": ("%", 2),
    "an": ("&", 2),
    "or": ("|", 2),
    "eo": ("^", 2),
    "aS": ("=", 2),
    "pL": ("+=", 2),
    "mI": ("-=", 2),
    "mL": ("*=", 2),
    "dV": ("/=", 2),
    "rM": ("%=", 2),
    "aN": ("&=", 2),
    "oR": ("|=", 2),
    "eO": ("^=", 2),
    "ls": ("<<", 2),
    "rs": (">>", 2),
    "lS": ("<<=", 2),
    "rS": (">>=", 2),
    "eq": ("==", 2),
    "ne": ("!=", 2),
    "lt": ("<", 2),
    "gt": (">", 2),
    "le": ("<=", 2),
    "ge": (">=", 2),
    "ss": ("<=>", 2),
    "aa": ("&&", 2),
    "oo": ("||", 2),
    "pp": ("++", 0),
    "mm": ("--", 0),
    "cm": (",", 2),
    "pm": ("->*", 2),
    "pt": ("->", 0),
    "cl": ("()", 0),
    "ix": ("[]", 0),
    "qu": ("?", 0),
}
