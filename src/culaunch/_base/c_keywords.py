"""The words of C and C++ that are not names."""

from __future__ import annotations

# Keywords of C up to C23 and of C++ up to C++23, and alternative spellings of operators.
_WORDS = """
    alignas alignof asm auto bool break case char const constexpr continue default do double else
    enum extern false float for goto if inline int long nullptr register restrict return short
    signed sizeof static static_assert struct switch thread_local true typedef typeof
    typeof_unqual union unsigned void volatile while
    and and_eq atomic_cancel atomic_commit atomic_noexcept bitand bitor catch char8_t char16_t
    char32_t class co_await co_return co_yield compl concept const_cast consteval constinit
    decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq
    operator or or_eq private protected public reflexpr reinterpret_cast requires static_cast
    synchronized template this throw try typeid typename using virtual wchar_t xor xor_eq
"""
KEYWORDS = frozenset(_WORDS.split())
