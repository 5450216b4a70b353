"""Integer instructions against arithmetic on Python's integers."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np
import pytest
from emulate import evaluate, launch

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(4)
EDGES = [0, 1, 2, 3, 31, 32, 33, 63, 64, 127, 128, 255, 0x7FFF, 0x8000, 0xFFFF]


def words(bits: int, count: int = 200) -> np.ndarray:
    """Return unsigned words: edge cases, then random ones of every magnitude."""
    edges = [*EDGES, 2**bits - 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1, 2 ** (bits - 1) + 1]
    edges = [e for e in edges if e < 2**bits]
    random = [
        int(x) >> int(s)
        for x, s in zip(
            RNG.integers(0, 2**bits, count, np.uint64, endpoint=False)
            if bits < 64
            else RNG.integers(0, 2**64, count, np.uint64),
            RNG.integers(0, bits, count),
            strict=True,
        )
    ]
    values = np.array(edges + random, np.uint64).astype(f"u{bits // 8}")
    return RNG.permutation(values)


def pairs(bits: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = words(bits), words(bits)
    edges = words(bits, 0)
    left, right = np.meshgrid(edges, edges)
    return np.concatenate([a, left.reshape(-1)]), np.concatenate([b, right.reshape(-1)])


def signed(value: int, bits: int) -> int:
    value &= 2**bits - 1
    return value - (value >> (bits - 1) << bits)


def check(
    code: str, reference: Callable[..., int], *inputs: np.ndarray, out_bits: int = 32
) -> None:
    got = evaluate(code, *inputs, out=f"u{out_bits // 8}")
    lists = np.broadcast_arrays(*inputs)
    mask = 2**out_bits - 1
    wanted = [reference(*row) & mask for row in zip(*(x.tolist() for x in lists), strict=True)]
    np.testing.assert_array_equal(got, np.array(wanted, np.uint64).astype(got.dtype))


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("sign", "us")
@pytest.mark.parametrize("name", ["add", "sub", "mul.lo", "mul.hi", "min", "max", "div", "rem"])
def test_arithmetic(name: str, sign: str, bits: int) -> None:
    def as_type(x: int) -> int:
        return signed(x, bits) if sign == "s" else x

    def divide(a: int, b: int) -> int:
        if b == 0:
            return -1
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    operations = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul.lo": lambda a, b: a * b,
        "mul.hi": lambda a, b: a * b >> bits,
        "min": min,
        "max": max,
        "div": divide,
        "rem": lambda a, b: a - divide(a, b) * b,
    }
    check(
        f"{name}.{sign}{bits} %out, %a, %b;",
        lambda a, b: operations[name](as_type(a), as_type(b)),
        *pairs(bits),
        out_bits=bits,
    )


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("sign", "us")
def test_wide(sign: str, bits: int) -> None:
    def as_type(x: int) -> int:
        return signed(x, bits) if sign == "s" else x

    a, b = pairs(bits)
    c = np.resize(words(2 * bits), a.shape)
    kind = f"{sign}{bits}"
    double = 2 * bits
    check(
        f"mul.wide.{kind} %out, %a, %b;", lambda x, y: as_type(x) * as_type(y), a, b,
        out_bits=double,
    )  # fmt: skip
    check(
        f"mad.wide.{kind} %out, %a, %b, %c;", lambda x, y, z: as_type(x) * as_type(y) + z, a, b, c,
        out_bits=double,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_mad(kind: str) -> None:
    bits = int(kind[1:])
    a, b = pairs(bits)
    c = np.resize(words(bits), a.shape)

    def as_type(x: int) -> int:
        return signed(x, bits) if kind[0] == "s" else x

    check(f"mad.lo.{kind} %out, %a, %b, %c;", lambda x, y, z: x * y + z, a, b, c, out_bits=bits)
    check(
        f"mad.hi.{kind} %out, %a, %b, %c;",
        lambda x, y, z: (as_type(x) * as_type(y) >> bits) + z,
        a, b, c, out_bits=bits,
    )  # fmt: skip
    check(
        f"sad.{kind} %out, %a, %b, %c;",
        lambda x, y, z: abs(as_type(x) - as_type(y)) + z,
        a, b, c, out_bits=bits,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["add", "sub"])
def test_saturated(name: str) -> None:
    def clamp(a: int, b: int) -> int:
        a, b = signed(a, 32), signed(b, 32)
        total = a + b if name == "add" else a - b
        return max(-(2**31), min(2**31 - 1, total))

    check(f"{name}.sat.s32 %out, %a, %b;", clamp, *pairs(32))


def test_carry_chains() -> None:
    a, b = pairs(64)
    c, d = np.resize(words(64), a.shape), np.resize(words(64), a.shape)
    wide = [x + (y << 64) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    other = [x + (y << 64) for x, y in zip(c.tolist(), d.tolist(), strict=True)]
    for name, code in (("add", "addc"), ("sub", "subc")):
        got = evaluate(f"{name}.cc.u64 %d0, %a, %c; {code}.u64 %out, %b, %d;", a, b, c, d, out="u8")
        sign = 1 if name == "add" else -1
        wanted = [(x + sign * y) >> 64 & (2**64 - 1) for x, y in zip(wide, other, strict=True)]
        np.testing.assert_array_equal(got, np.array(wanted, np.uint64))
    # Three words of a product: mad.lo.cc, madc.hi.
    got = evaluate(
        "mad.lo.cc.u32 %r0, %a, %b, %c; madc.hi.u32 %out, %a, %b, %d;",
        *(x.astype(np.uint32) for x in (a, b, c, d)),
    )
    rows = zip(*((x & np.uint64(2**32 - 1)).tolist() for x in (a, b, c, d)), strict=True)
    wanted = [(x * y + z + (w << 32)) >> 32 & 0xFFFFFFFF for x, y, z, w in rows]
    np.testing.assert_array_equal(got, np.array(wanted, np.uint32))


def with_carry(op: str, flag: int, values: list[int], bits: int) -> tuple[int, int]:
    """Return the result and the carry of an adder that subtracts by adding the complement."""
    a, b, *rest = values
    name, *mods = op.split(".")
    if name[:3] == "mad":
        product = a * b
        a, b = product & (1 << bits) - 1 if "lo" in mods else product >> bits, rest[0]
    elif name[:3] == "sub":
        b = ~b & (1 << bits) - 1
    incoming = flag if name[-1] == "c" else int(name == "sub")
    total = a + b + incoming
    return total & (1 << bits) - 1, total >> bits if "cc" in mods else flag


@pytest.mark.sweep(8)
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("head", ["add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc"])
def test_the_carry_of_mixed_chains(head: str, bits: int) -> None:
    # Which an H200 confirmed for every chain of two and three, 2048 sets of operands each.
    middles = ("addc.cc", "subc.cc", "madc.lo.cc", "madc.hi.cc")
    tails = [middle.removesuffix(".cc") for middle in middles]
    dtype = np.dtype(f"u{bits // 8}")
    a, b, c, d = (np.resize(x, 64).astype(dtype) for x in (*pairs(bits), *pairs(bits)[::-1]))
    for middle in (None, *middles):
        for tail in tails:
            chain = [op for op in (head, middle, tail) if op]
            code, sources = [], ["%a, %b, %c", "%b, %d, %a", "%c, %a, %d"]
            for i, (op, source) in enumerate(zip(chain, sources, strict=False)):
                given = source if op.startswith("mad") else source[: source.rindex(",")]
                place = "%out" if op == tail else f"%{'r' if bits == 32 else 'd'}{i}"
                code.append(f"{op}.u{bits} {place}, {given};")
            got = evaluate(" ".join(code), a, b, c, d, out=dtype.str[1:])
            for lane in range(len(a)):
                w, x, y, z = (int(values[lane]) for values in (a, b, c, d))
                flag, result = 0, 0
                for op, values in zip(chain, ([w, x, y], [x, z, w], [y, w, z]), strict=False):
                    result, flag = with_carry(op, flag, values, bits)
                assert int(got[lane]) == result, (chain, w, x, y, z)


@pytest.mark.parametrize("bits", [32, 64])
def test_counting(bits: int) -> None:
    a = words(bits)
    check(f"popc.b{bits} %out, %a;", lambda x: x.bit_count(), a)
    check(f"clz.b{bits} %out, %a;", lambda x: bits - x.bit_length(), a)
    check(f"brev.b{bits} %out, %a;", lambda x: int(f"{x:0{bits}b}"[::-1], 2), a, out_bits=bits)
    check(f"bfind.u{bits} %out, %a;", lambda x: x.bit_length() - 1, a)
    check(
        f"bfind.shiftamt.u{bits} %out, %a;",
        lambda x: bits - x.bit_length() if x else -1,
        a,
    )

    def find_signed(x: int) -> int:
        x = signed(x, bits)
        return (~x if x < 0 else x).bit_length() - 1

    check(f"bfind.s{bits} %out, %a;", find_signed, a)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_bit_fields(kind: str) -> None:
    bits = int(kind[1:])
    a, b = words(bits), words(bits)
    position = RNG.integers(0, 80, a.shape, np.uint32)
    length = RNG.integers(0, 80, a.shape, np.uint32)

    def extract(x: int, pos: int, size: int) -> int:
        last = min(pos + size - 1, bits - 1)
        fill = x >> last & 1 if kind[0] == "s" and size else 0
        got = 0
        for i in range(bits):
            bit = x >> (pos + i) & 1 if i < size and pos + i < bits else fill
            got |= bit << i
        return got

    def insert(x: int, y: int, pos: int, size: int) -> int:
        for i in range(size):
            if pos + i < bits:
                y = y & ~(1 << pos + i) | (x >> i & 1) << pos + i
        return y

    check(f"bfe.{kind} %out, %a, %b, %c;", extract, a, position, length, out_bits=bits)
    if kind[0] == "u":
        check(f"bfi.b{bits} %out, %a, %b, %c, %d;", insert, a, b, position, length, out_bits=bits)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shifts(bits: int) -> None:
    a = words(bits)
    amount = RNG.integers(0, 80, a.shape, np.uint32)
    check(f"shl.b{bits} %out, %a, %b;", lambda x, n: x << n, a, amount, out_bits=bits)
    check(f"shr.u{bits} %out, %a, %b;", lambda x, n: x >> n, a, amount, out_bits=bits)
    check(f"shr.s{bits} %out, %a, %b;", lambda x, n: signed(x, bits) >> n, a, amount, out_bits=bits)


def test_funnel_shifts() -> None:
    a, b = words(32), words(32)
    amount = RNG.integers(0, 70, a.shape, np.uint32)
    for mode, limit in (("wrap", lambda n: n & 31), ("clamp", lambda n: min(n, 32))):
        check(
            f"shf.l.{mode}.b32 %out, %a, %b, %c;",
            lambda x, y, n, limit=limit: (y << 32 | x) << limit(n) >> 32,
            a, b, amount,
        )  # fmt: skip
        check(
            f"shf.r.{mode}.b32 %out, %a, %b, %c;",
            lambda x, y, n, limit=limit: (y << 32 | x) >> limit(n),
            a, b, amount,
        )  # fmt: skip


@pytest.mark.slow
def test_lop3_of_every_table() -> None:
    a, b, c = words(32, 40), words(32, 40), words(32, 40)
    for table in range(256):
        got = evaluate(f"lop3.b32 %out, %a, %b, %c, {table};", a, b, c)
        wanted = np.zeros_like(a)
        for row in range(8):
            if table >> row & 1:
                x = a if row & 4 else ~a
                y = b if row & 2 else ~b
                wanted |= x & y & (c if row & 1 else ~c)
        np.testing.assert_array_equal(got, wanted, err_msg=f"table {table:#x}")


def test_prmt() -> None:
    a, b = words(32), words(32)
    selector = RNG.integers(0, 2**16, a.shape, np.uint32)

    def permute(x: int, y: int, s: int) -> int:
        raw = (x | y << 32).to_bytes(8, "little")
        out = 0
        for i in range(4):
            byte = raw[s >> 4 * i & 7]
            if s >> 4 * i & 8:
                byte = 255 if byte & 128 else 0
            out |= byte << 8 * i
        return out

    check("prmt.b32 %out, %a, %b, %c;", permute, a, b, selector)
    check("prmt.b32 %out, %a, %b, 0x9f40;", lambda x, y: permute(x, y, 0x9F40), a, b)
    modes = {
        "f4e": lambda s: sum((s + i) << 4 * i for i in range(4)),
        "b4e": lambda s: sum(((s - i) & 7) << 4 * i for i in range(4)),
        "rc8": lambda s: s * 0x1111,
        "ecl": lambda s: sum(max(s, i) << 4 * i for i in range(4)),
        "ecr": lambda s: sum(min(s, i) << 4 * i for i in range(4)),
        "rc16": lambda s: 0x1010 + (s & 1) * 0x2222,
    }
    for mode, select in modes.items():
        check(
            f"prmt.b32.{mode} %out, %a, %b, %c;",
            lambda x, y, s, select=select: permute(x, y, select(s & 3)),
            a, b, selector,
        )  # fmt: skip


def test_dot_products() -> None:
    a, b, c = words(32), words(32), words(32)

    def parts(x: int, size: int, kind: str) -> list[int]:
        found = [x >> 8 * size * i & (1 << 8 * size) - 1 for i in range(4 // size)]
        return [signed(v, 8 * size) for v in found] if kind[0] == "s" else found

    for left in ("u32", "s32"):
        for right in ("u32", "s32"):

            def dot4(x: int, y: int, z: int, left: str = left, right: str = right) -> int:
                both = zip(parts(x, 1, left), parts(y, 1, right), strict=True)
                return z + sum(p * q for p, q in both)

            check(f"dp4a.{left}.{right} %out, %a, %b, %c;", dot4, a, b, c)
            for half, start in (("lo", 0), ("hi", 2)):

                def dot2(
                    x: int, y: int, z: int, left: str = left, right: str = right, start: int = start
                ) -> int:
                    both = zip(parts(x, 2, left), parts(y, 1, right)[start:], strict=False)
                    return z + sum(p * q for p, q in both)

                check(f"dp2a.{half}.{left}.{right} %out, %a, %b, %c;", dot2, a, b, c)


def test_small_ones() -> None:
    a, b = pairs(32)
    check("not.b32 %out, %a;", lambda x: ~x, a)
    check("cnot.b32 %out, %a;", lambda x: int(x == 0), a)
    check("abs.s32 %out, %a;", lambda x: abs(signed(x, 32)), a)
    check("neg.s32 %out, %a;", lambda x: -x, a)
    check("mul24.lo.u32 %out, %a, %b;", lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF), a, b)
    check("mul24.hi.u32 %out, %a, %b;", lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF) >> 16, a, b)
    check("mul24.lo.s32 %out, %a, %b;", lambda x, y: signed(x, 24) * signed(y, 24), a, b)
    check("bmsk.clamp.b32 %out, %a, %b;", _mask, a, b)
    check("bmsk.wrap.b32 %out, %a, %b;", lambda x, y: _mask(x & 31, y & 31), a, b)
    check("szext.wrap.s32 %out, %a, %b;", lambda x, y: signed(x, y & 31) if y & 31 else 0, a, b)
    check("szext.clamp.u32 %out, %a, %b;", lambda x, y: x & ((1 << min(y, 32)) - 1), a, b)


def _mask(position: int, size: int) -> int:
    return ((1 << min(size, 32)) - 1) << position if position < 32 else 0


def test_fns() -> None:
    mask = words(32)
    base = RNG.integers(0, 32, mask.shape, np.uint32)
    offset = RNG.integers(-5, 6, mask.shape, np.int32)

    def find(m: int, b: int, n: int) -> int:
        if n == 0:
            return b if m >> b & 1 else -1
        where = range(b, 32) if n > 0 else range(b, -1, -1)
        found = [i for i in where if m >> i & 1]
        return found[abs(n) - 1] if len(found) >= abs(n) else -1

    check("fns.b32 %out, %a, %b, %c;", find, mask, base, offset)


@pytest.mark.parametrize("count", [2, 4])
def test_video(count: int) -> None:
    a, b, c = words(32), words(32), words(32)
    size, most = 4 // count, 256 ** (4 // count) - 1

    def parts(x: int) -> list[int]:
        return [x >> 8 * size * i & most for i in range(count)]

    def joined(values: list[int]) -> int:
        return sum((v & most) << 8 * size * i for i, v in enumerate(values))

    functions = {
        "vabsdiff": lambda x, y: abs(x - y),
        "vadd": lambda x, y: x + y,
        "vsub": lambda x, y: x - y,
        "vmin": min,
        "vmax": max,
        "vavrg": lambda x, y: (x + y + 1) // 2,
    }
    for name, function in functions.items():

        def each(x: int, y: int, function: Callable[[int, int], int] = function) -> list[int]:
            return [function(p, q) for p, q in zip(parts(x), parts(y), strict=True)]

        code = f"{name}{count}.u32.u32.u32 %out, %a, %b, %c;"
        check(code, lambda x, y, z, each=each: joined(each(x, y)), a, b, c)
        guarded = f"mov.b32 %out, 777; setp.lt.u32 %p0, %a, %b; @%p0 {code}"
        check(guarded, lambda x, y, z, each=each: joined(each(x, y)) if x < y else 777, a, b, c)
        code = f"{name}{count}.u32.u32.u32.add %out, %a, %b, %c;"
        check(code, lambda x, y, z, each=each: sum(each(x, y)) + z, a, b, c)
    check(
        f"vadd{count}.u32.u32.u32.sat %out, %a, %b, %c;",
        lambda x, y, z: joined([min(p + q, most) for p, q in zip(parts(x), parts(y), strict=True)]),
        a, b, c,
    )  # fmt: skip


@pytest.mark.parametrize("kinds", ["u32.u32", "s32.s32", "u32.s32", "s32.u32"])
@pytest.mark.parametrize("comparison", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("count", [2, 4])
def test_set_of_parts(kinds: str, comparison: str, count: int) -> None:
    a, b, c = words(32), words(32), words(32)
    b = np.where(RNG.integers(0, 2, b.shape).astype(bool), a, b)
    compare = getattr(operator, comparison)
    bits = 32 // count

    def parts(x: int, kind: str) -> list[int]:
        found = [x >> bits * i & 2**bits - 1 for i in range(count)]
        return [signed(p, bits) if kind == "s32" else p for p in found]

    def each(x: int, y: int) -> list[int]:
        first, second = kinds.split(".")
        return [int(compare(p, q)) for p, q in zip(parts(x, first), parts(y, second), strict=True)]

    def joined(x: int, y: int) -> int:
        return sum(v << bits * i for i, v in enumerate(each(x, y)))

    code = f"vset{count}.{kinds}.{comparison}"
    check(f"{code} %out, %a, %b, %c;", lambda x, y, z: joined(x, y), a, b, c)
    check(f"{code}.add %out, %a, %b, %c;", lambda x, y, z: sum(each(x, y)) + z, a, b, c)
    guarded = f"mov.b32 %out, 777; setp.lt.u32 %p0, %a, %b; @%p0 {code} %out, %a, %b, %c;"
    check(guarded, lambda x, y, z: joined(x, y) if x < y else 777, a, b, c)


def test_128_bit_division() -> None:
    import culaunch as cl

    source = """extern "C" __global__ void k(unsigned long long* o, const unsigned long long* i) {
      typedef unsigned __int128 wide;
      i += 4 * threadIdx.x, o += 4 * threadIdx.x;
      wide a = (wide)i[0] << 64 | i[1], b = (wide)i[2] << 64 | i[3];
      wide q = a / b, r = a % b;
      o[0] = q >> 64, o[1] = q, o[2] = r >> 64, o[3] = r;
    }"""
    image = cl.compile(source, arch="compute_80", extra_options=["--device-int128"])
    count = 64
    given = RNG.integers(0, 2**64, (count, 4), np.uint64, endpoint=False)
    given >>= RNG.integers(0, 64, (count, 4), np.uint64)
    given[: count // 2, 2] = 0
    given[:, 3] |= 1
    out = np.zeros_like(given)
    launch(image.data.decode(), "k", out, given, block=(count,))
    for (a1, a0, b1, b0), got in zip(given.tolist(), out.tolist(), strict=True):
        quotient, rest = divmod(a1 << 64 | a0, b1 << 64 | b0)
        low = 2**64 - 1
        assert got == [quotient >> 64, quotient & low, rest >> 64, rest & low]
