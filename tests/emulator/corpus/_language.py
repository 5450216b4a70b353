"""Calls, pointers, local arrays, constants, switches, integers."""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

import numpy as np

from corpus._case import Case, from_cuda

_LANGUAGE = partial(Case, ptx=from_cuda("language.cu"), grid=(1,))
_PAIR = np.dtype([("weight", np.float32, 3), ("index", np.int32)])
_TABLE = np.float32(2) ** np.arange(8, dtype=np.float32)


def _fibonacci(n: int) -> int:
    return n if n < 2 else _fibonacci(n - 1) + _fibonacci(n - 2)


def _pointers(a: list[Any]) -> dict[int, np.ndarray]:
    functions = (_fibonacci, lambda n: 2 * n, lambda n: n * n)
    return {0: np.array([functions[i % 3](i % 11) for i in range(64)], np.int32)}


def _pair() -> np.void:
    return np.array([((0.5, -1.5, 4.0), 3)], _PAIR)[0]


def _structs(a: list[Any]) -> dict[int, np.ndarray]:
    given, old, t = a
    new = old.copy()
    product = given["weight"].astype(np.float64) * float(t) + old["weight"]
    new["weight"] = product.astype(np.float32)
    new["index"] = old["index"] + given["index"]
    return {1: new}


def _random_pairs(rng: np.random.Generator) -> np.ndarray:
    pairs = np.zeros(32, _PAIR)
    pairs["weight"] = rng.standard_normal((32, 3))
    pairs["index"] = np.arange(32)
    return pairs


def _constants(a: list[Any]) -> dict[int, np.ndarray]:
    i = np.arange(64)
    out = _TABLE[i & 7] + _TABLE[4 * (i & 1)] + _TABLE[4 + (i & 3)]
    out[0] = 5 + int(a[1])
    return {0: out}


def _locals(a: list[Any]) -> dict[int, np.ndarray]:
    n = int(a[1])
    t = np.arange(48)
    scratch = (t[:, None] * 7 + np.arange(16) * 13) % 16
    at = t % 16
    for _ in range(n):
        at = scratch[t, at]
    return {0: (at + scratch[t, (t + n) % 16]).astype(np.int32)}


def _switch(v: int, old: int) -> int:
    if v == 4:
        i = 0
        while i < v and i < 1000:
            v, i = v + (i & 1), i + 1
        return v
    known = {0: 17, 1: 8, 2: 7, 3: -3, 5: 5 ^ 0x55, 6: old}
    return known.get(v, 99)


def _switches(a: list[Any]) -> dict[int, np.ndarray]:
    return {1: np.array([_switch(int(v), int(o)) for v, o in zip(*a, strict=True)], np.int32)}


def _generic(a: list[Any]) -> dict[int, np.ndarray]:
    t = np.arange(64)
    following = (t + 1) % 64
    which = int(a[1])
    pick = np.choose(t % 3, [following * 2, following * 3, 1000 if which else t])
    if which:
        pick = np.where(t % 2, pick, a[0][64 + following])
    return {0: np.concatenate([pick, a[0][64:]]).astype(np.int32)}


def _c_divide(a: int, b: int) -> tuple[int, int]:
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - quotient * b


def _division(a: list[Any]) -> dict[int, np.ndarray]:
    narrow: list[int] = []
    for x, y in zip(a[0].tolist(), a[1].tolist(), strict=True):
        unsigned_x, unsigned_y = x & 0xFFFFFFFF, y & 0xFFFFFFFF
        narrow += [*_c_divide(x, y), *divmod(unsigned_x, unsigned_y)]
    narrow_bits = struct.pack(f"<{len(narrow)}I", *(v & 0xFFFFFFFF for v in narrow))
    return {2: np.frombuffer(narrow_bits, np.int32), 3: _wide(a)}


def _wide(a: list[Any]) -> np.ndarray:
    mask, out = 2**64 - 1, []
    for x, y in zip(a[0].tolist(), a[1].tolist(), strict=True):
        c = x * 1234567891
        out += [*_c_divide(c, y), (c & mask) // (y & mask), c * (c ^ y) >> 64]
    return np.array([v & mask for v in out], np.uint64).view(np.int64)


def _integers(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return integers of every magnitude, none of them zero."""
    raw = rng.integers(-(2**31) + 1, 2**31, count) >> rng.integers(0, 30, count)
    return np.where(raw == 0, 1, raw).astype(np.int32)


def _bits(a: list[Any]) -> dict[int, np.ndarray]:
    out = []
    values = a[0].tolist()
    for i, v in enumerate(values):
        w = values[(i + 1) % len(values)]
        both = w << 32 | v
        sv, sw = (x - (x >> 31 << 32) for x in (v, w))
        left, right = w & 63 & 31, min(w & 63, 32)
        raw = v.to_bytes(4, "little") + w.to_bytes(4, "little")
        permuted = [int.from_bytes(_permute(raw, s), "little") for s in (0x5140, w & 0xFFFF)]
        sv8, sw8 = (np.array([x], np.uint32).view(np.int8).astype(int) for x in (v, w))
        high = (v * w >> 32) + (sv * sw >> 32)
        added = [min(x + y, 255) for x, y in zip(raw[:4], raw[4:], strict=True)]
        out += [
            v.bit_count(),
            32 - v.bit_length(),
            int(f"{v:032b}"[::-1], 2),
            (v & -v).bit_length(),
            *permuted,
            both << left >> 32,
            both >> right,
            abs(sv - sw) + 7,
            int((sv8 * sw8).sum()) + 11,
            high,
            (v >> 3 & 0x1F) | (w << 5 & 0xFF00) | int.from_bytes(bytes(added), "little"),
        ]
    return {1: np.array([x & 0xFFFFFFFF for x in out], np.uint32)}


def _permute(raw: bytes, selector: int) -> bytes:
    # __byte_perm ignores the bit that would replicate the sign.
    return bytes(raw[selector >> 4 * i & 7] for i in range(4))


LANGUAGE = (
    _LANGUAGE(
        name="recursion",
        kernel="recursion",
        grid=(3,),
        block=(40,),
        arguments=lambda rng: [np.zeros(100, np.int32), np.int32(100)],
        expected=lambda a: {0: np.array([_fibonacci(i % 13) for i in range(100)], np.int32)},
    ),
    _LANGUAGE(
        name="function_pointers",
        kernel="function_pointers",
        block=(64,),
        arguments=lambda rng: [np.zeros(64, np.int32)],
        expected=_pointers,
    ),
    _LANGUAGE(
        name="structs",
        kernel="structs",
        block=(32,),
        arguments=lambda rng: [_pair(), _random_pairs(rng), np.float32(0.25)],
        expected=_structs,
    ),
    _LANGUAGE(
        name="constants",
        kernel="constants",
        block=(64,),
        arguments=lambda rng: [np.zeros(64, np.float32), np.int32(33)],
        expected=_constants,
    ),
    _LANGUAGE(
        name="local_arrays",
        kernel="local_arrays",
        block=(48,),
        arguments=lambda rng: [np.zeros(48, np.int32), np.int32(21)],
        expected=_locals,
    ),
    _LANGUAGE(
        name="switches",
        kernel="switches",
        block=(64,),
        arguments=lambda rng: [
            rng.choice([0, 1, 2, 3, 5, 6, 7, 8], 64).astype(np.int32),
            np.full(64, -1, np.int32),
        ],
        expected=_switches,
    ),
    _LANGUAGE(
        name="parameter_array",
        kernel="parameter_array",
        block=(32,),
        arguments=lambda rng: [_pair(), np.zeros(32, np.int32)],
        expected=lambda a: {1: np.resize(np.array([a[0]]).view(np.int32), 32)},
    ),
    *(
        _LANGUAGE(
            name=f"shared_generic_{which}",
            kernel="shared_generic",
            block=(64,),
            shared=256,
            arguments=lambda rng, which=which: [
                rng.integers(0, 99, 128, np.int32),
                np.int32(which),
            ],
            expected=_generic,
        )
        for which in (0, 1)
    ),
    _LANGUAGE(
        name="integer_division",
        kernel="integer_division",
        block=(96,),
        arguments=lambda rng: [
            _integers(96, rng),
            _integers(96, rng),
            np.zeros(384, np.int32),
            np.zeros(384, np.int64),
        ],
        expected=_division,
    ),
    _LANGUAGE(
        name="bit_tricks",
        kernel="bit_tricks",
        block=(96,),
        arguments=lambda rng: [_integers(96, rng).view(np.uint32), np.zeros(1152, np.uint32)],
        expected=_bits,
    ),
)
