"""Random PTX programs whose results PTX defines to the last bit, and their inputs.

A program is one block of 64 threads. Each reads eight words, computes in integer, f16, f32 and f64
registers, in branches and bounded loops that its lanes take differently, talks to other lanes in
shuffles, votes, reductions and shared memory, and stores what is in its registers.

Left out is what PTX leaves open: approximations, divisions by zero, shuffles from lanes that are
elsewhere, the order of float additions. And left out is where ptxas does other than PTX says: it
folds negations, and ``min`` and ``max`` of a float with itself (whatever NaN that is); it drops the
guard of ``testp``; constant positions and lengths of ``bfe`` and ``bfi`` past 31 are others to it.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

THREADS = 64
INPUTS = 8
_WORDS, _SINGLES, _HALVES, _LONGS, _DOUBLES, _PREDICATES = 8, 4, 4, 2, 2, 4
# Words that a thread stores.
OUTPUTS = _WORDS + _SINGLES + _HALVES // 2 + 2 * (_LONGS + _DOUBLES)
NAMES = (
    *(f"%r{i}" for i in range(_WORDS)),
    *(f"%f{i}" for i in range(_SINGLES)),
    *(f"%h{2 * i}|%h{2 * i + 1}" for i in range(_HALVES // 2)),
    *(f"%{kind}{i}.{part}" for kind in "ld" for i in range(2) for part in ("low", "high")),
)
_ROUNDINGS = (".rn", ".rz", ".rm", ".rp")
_COMPARES = ("eq", "ne", "lt", "le", "gt", "ge")
_FLOAT_COMPARES = (*_COMPARES, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def program(seed: int) -> str:
    """Return the PTX of the program number `seed`; its kernel is called ``k``."""
    return _Writer(random.Random(seed)).text()


def inputs(seed: int) -> np.ndarray:
    """Return the words that it reads: any bits, small numbers, numbers near one, corners of f32.

    They are made of integers alone, so that they stay the same with every version of NumPy.
    """
    state = np.arange(1, THREADS * INPUTS + 1, dtype=np.uint64).reshape(THREADS, INPUTS)
    bits = (state + np.uint64(seed << 20)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    words = (bits >> np.uint64(32)).astype(np.uint32)
    kind = bits % np.uint64(10)
    small = (words % np.uint32(19)) - np.uint32(9)
    near_one = (words & np.uint32(0x81FFFFFF)) + np.uint32(0x3F000000)
    corners = np.array([0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001])
    corner = corners.astype(np.uint32)[words % np.uint32(8)] ^ (words & np.uint32(1 << 31))
    return np.select([kind < 4, kind < 6, kind < 9], [words, small, near_one], corner)


def launch(cl: Any, text: str, given: np.ndarray) -> np.ndarray:
    """Run a program on culaunch's driver in use, and return the words that it stored."""
    source = cl.to_device(given)
    out = cl.to_device(np.zeros((THREADS, OUTPUTS), np.uint32))
    with cl.load(cl.Image(text.encode())) as module:
        module["k"][1, THREADS](source, out)
        return out.numpy()


def differences(seed: int, emulated: np.ndarray, real: np.ndarray) -> list[str]:
    """Say where two results of a program differ: nothing if they do not."""
    threads, words = np.nonzero(emulated != real)
    if not len(words):
        return []
    shown = ", ".join(
        f"thread {t} {NAMES[w]}: {emulated[t, w]:#010x}, GPU {real[t, w]:#010x}"
        for t, w in list(zip(threads, words, strict=True))[:4]
    )
    named = " ".join(NAMES[w] for w in np.unique(words))
    return [f"seed {seed}: {len(words)} words of {named} differ: {shown}"]


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.labels = 0
        self.depth = 0

    def text(self) -> str:
        self.block(self.rng.randint(12, 30), together=True)
        return "\n".join([*_HEAD, *self.lines, *_TAIL]) + "\n"

    # -- control flow

    def block(self, count: int, *, together: bool = False) -> None:
        """Write some statements; where all lanes are `together`, also such as need that."""
        for _ in range(count):
            kind = self.rng.random()
            if kind < 0.12 and self.depth < 3:
                self.pick((self.branch, self.branch, self.loop, self.switch))()
            elif kind < 0.30 and together:
                self.pick(_TOGETHER)(self)
            else:
                self.statement()

    def statement(self) -> None:
        code = self.pick(_STATEMENTS)(self)
        guard = self.rng.random()
        if guard < 0.2 and "{" not in code and code.count(";") == 1 and "testp" not in code:
            code = f"@{self.pick(('', '!'))}{self.p()} {code}"
        self.lines.append(code)

    def branch(self) -> None:
        other, end = self.label(), self.label()
        self.lines.append(f"@{self.pick(('', '!'))}{self.p()} bra {other};")
        self.nested()
        self.lines += [f"bra {end};", f"{other}:"]
        self.nested()
        self.lines.append(f"{end}:")

    def loop(self) -> None:
        start, end = self.label(), self.label()
        counter, over = f"%c{self.depth}", f"%q{self.depth}"
        self.lines += [
            f"and.b32 {counter}, {self.r()}, {self.pick((1, 3, 5, 7))};",
            f"{start}:",
            f"setp.eq.u32 {over}, {counter}, 0;",
            f"@{over} bra {end};",
        ]
        self.nested()
        if self.rng.random() < 0.3:  # break
            self.lines.append(f"@{self.p()} bra {end};")
        self.lines += [f"sub.u32 {counter}, {counter}, 1;", f"bra {start};", f"{end}:"]

    def switch(self) -> None:
        names = [self.label() for _ in range(3)]
        end = self.label()
        index = f"%c{self.depth}"
        self.lines += [
            f"and.b32 {index}, {self.r()}, 3; min.u32 {index}, {index}, 2;",
            f"{{ table{end[1:]}: .branchtargets {', '.join(names)};",
            f"brx.idx {index}, table{end[1:]}; }}",
        ]
        for name in names:
            self.lines.append(f"{name}:")
            self.nested()
            if self.rng.random() < 0.7:  # else fall through
                self.lines.append(f"bra {end};")
        self.lines.append(f"{end}:")

    def nested(self) -> None:
        self.depth += 1
        self.block(self.rng.randint(1, 4))
        self.depth -= 1

    def label(self) -> str:
        self.labels += 1
        return f"$L{self.labels}"

    # -- operands

    def pick(self, options: Sequence[Any]) -> Any:
        return self.rng.choice(options)

    def r(self) -> str:
        return f"%r{self.rng.randrange(_WORDS)}"

    def f(self) -> str:
        return f"%f{self.rng.randrange(_SINGLES)}"

    def h(self) -> str:
        return f"%h{self.rng.randrange(_HALVES)}"

    def l(self) -> str:  # noqa: E743
        return f"%l{self.rng.randrange(_LONGS)}"

    def d(self) -> str:
        return f"%d{self.rng.randrange(_DOUBLES)}"

    def p(self) -> str:
        return f"%p{self.rng.randrange(_PREDICATES)}"

    def two(self, kind: str, count: int) -> list[str]:
        """Return two different registers."""
        return [f"%{kind}{i}" for i in self.rng.sample(range(count), 2)]

    def ri(self) -> str:
        """Return a register or an immediate."""
        if self.rng.random() < 0.7:
            return self.r()
        return str(self.pick((0, 1, -1, 31, 255, 0x12345678, self.rng.getrandbits(31))))


# ---- statements: integers


def _integer(w: _Writer) -> str:
    t = w.pick(("u32", "s32"))
    op = w.pick(("add", "sub", "mul.lo", "mul.hi", "min", "max", "mul24.lo"))
    return f"{op}.{t} {w.r()}, {w.r()}, {w.ri()};"


def _integer_three(w: _Writer) -> str:
    t = w.pick(("u32", "s32"))
    return f"{w.pick(('mad.lo', 'mad.hi', 'sad'))}.{t} {w.r()}, {w.r()}, {w.ri()}, {w.r()};"


def _logic(w: _Writer) -> str:
    if w.rng.random() < 0.3:
        table = w.rng.randrange(256)
        return f"lop3.b32 {w.r()}, {w.r()}, {w.ri()}, {w.r()}, {table};"
    return f"{w.pick(('and', 'or', 'xor'))}.b32 {w.r()}, {w.r()}, {w.ri()};"


def _shift(w: _Writer) -> str:
    if w.rng.random() < 0.4:
        op = f"shf.{w.pick('lr')}.{w.pick(('wrap', 'clamp'))}.b32"
        return f"{op} {w.r()}, {w.r()}, {w.r()}, {w.ri()};"
    return f"{w.pick(('shl.b32', 'shr.u32', 'shr.s32'))} {w.r()}, {w.r()}, {w.ri()};"


def _one(w: _Writer) -> str:
    ops = ("not.b32", "neg.s32", "abs.s32", "popc.b32", "clz.b32", "brev.b32", "cnot.b32")
    ops += ("bfind.u32", "bfind.s32", "bfind.shiftamt.u32")
    return f"{w.pick(ops)} {w.r()}, {w.r()};"


def _field(w: _Writer) -> str:
    at, length = (w.pick((w.r(), str(w.rng.randrange(32)))) for _ in range(2))
    if w.rng.random() < 0.5:
        return f"bfe.{w.pick('us')}32 {w.r()}, {w.r()}, {at}, {length};"
    return f"bfi.b32 {w.r()}, {w.r()}, {w.r()}, {at}, {length};"


def _permute(w: _Writer) -> str:
    mode = w.pick(("", "", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"))
    return f"prmt.b32{mode} {w.r()}, {w.r()}, {w.r()}, {w.ri()};"


def _dot(w: _Writer) -> str:
    op = w.pick(("dp4a", "dp2a.lo", "dp2a.hi"))
    return f"{op}.{w.pick('us')}32.{w.pick('us')}32 {w.r()}, {w.r()}, {w.r()}, {w.r()};"


def _divide(w: _Writer) -> str:
    return (
        f"or.b32 %t0, {w.r()}, 1; and.b32 %t0, %t0, 0x7fffffff; "
        f"{w.pick(('div', 'rem'))}.{w.pick('us')}32 {w.r()}, {w.r()}, %t0;"
    )


def _carry(w: _Writer) -> str:
    def step(name: str) -> str:
        third = f", {w.r()}" if name.startswith("mad") else ""
        return f"{name}.u32 {w.r()}, {w.r()}, {w.ri()}{third};"

    middle = ("addc.cc", "subc.cc", "madc.lo.cc", "madc.hi.cc")
    chain = [w.pick(("add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc"))]
    chain += [w.pick(middle) for _ in range(w.pick((0, 0, 1, 2)))]
    chain += [w.pick(middle).removesuffix(".cc")]
    return " ".join(map(step, chain))


def _wide(w: _Writer) -> str:
    t = w.pick("us")
    return w.pick(
        (
            f"mul.wide.{t}32 {w.l()}, {w.r()}, {w.r()};",
            f"mad.wide.{t}32 {w.l()}, {w.r()}, {w.r()}, {w.l()};",
            (
                f"{w.pick(('add', 'sub', 'mul.lo', 'mul.hi', 'min', 'max'))}.{t}64 "
                f"{w.l()}, {w.l()}, {w.l()};"
            ),
            f"{w.pick(('and', 'or', 'xor'))}.b64 {w.l()}, {w.l()}, {w.l()};",
            f"{w.pick(('shl.b64', 'shr.u64', 'shr.s64'))} {w.l()}, {w.l()}, {w.r()};",
            f"{w.pick(('popc', 'clz'))}.b64 {w.r()}, {w.l()};",
            f"mov.b64 {w.l()}, {{{w.r()}, {w.r()}}};",
            f"mov.b64 {{{w.r()}, {w.r()}}}, {w.l()};",
        )
    )


def _compare(w: _Writer) -> str:
    kind = w.rng.random()
    if kind < 0.3:
        pair = f"{w.f()}, {w.f()};"
        return f"setp.{w.pick(_FLOAT_COMPARES)}{w.pick(('', '.ftz'))}.f32 {w.p()}, {pair}"
    if kind < 0.4:
        return f"setp.{w.pick(_FLOAT_COMPARES)}.f64 {w.p()}, {w.d()}, {w.d()};"
    if kind < 0.5:
        return f"setp.{w.pick(_FLOAT_COMPARES)}.f16 {w.p()}, {w.h()}, {w.h()};"
    t, compare = w.pick(("u32", "s32")), w.pick(_COMPARES)
    if kind < 0.7:
        both = w.rng.sample(range(_PREDICATES), 2)
        op = f"setp.{compare}.{w.pick(('and', 'or', 'xor'))}.{t}"
        return f"{op} %p{both[0]}|%p{both[1]}, {w.r()}, {w.ri()}, {w.p()};"
    if kind < 0.8:
        return f"set.{compare}.u32.{t} {w.r()}, {w.r()}, {w.r()};"
    return f"setp.{compare}.{t} {w.p()}, {w.r()}, {w.ri()};"


def _select(w: _Writer) -> str:
    return w.pick(
        (
            f"selp.b32 {w.r()}, {w.r()}, {w.ri()}, {w.p()};",
            f"selp.f32 {w.f()}, {w.f()}, {w.f()}, {w.p()};",
            f"slct.s32.s32 {w.r()}, {w.r()}, {w.r()}, {w.r()};",
            f"slct.u32.f32 {w.r()}, {w.r()}, {w.r()}, {w.f()};",
            f"{w.pick(('and', 'or', 'xor'))}.pred {w.p()}, {w.p()}, {w.p()};",
            f"not.pred {w.p()}, {w.p()};",
        )
    )


# ---- statements: floats


def _single(w: _Writer) -> str:
    flags = w.pick(_ROUNDINGS) + w.pick(("", "", ".ftz")) + w.pick(("", "", ".sat"))
    name = w.pick(("add", "sub", "mul", "fma"))
    third = f", {w.f()}" if name == "fma" else ""
    return f"{name}{flags}.f32 {w.f()}, {w.f()}, {w.f()}{third};"


def _single_slow(w: _Writer) -> str:
    name = w.pick(("div", "rcp", "sqrt"))
    second = f", {w.f()}" if name == "div" else ""
    return f"{name}{w.pick(_ROUNDINGS)}{w.pick(('', '.ftz'))}.f32 {w.f()}, {w.f()}{second};"


def _single_order(w: _Writer) -> str:
    flags = w.pick(("", ".ftz")) + w.pick(("", ".NaN"))
    first, second = w.two("f", _SINGLES)
    test = w.pick(("finite", "infinite", "number", "notanumber", "normal", "subnormal"))
    return w.pick(
        (
            f"{w.pick(('min', 'max'))}{flags}.f32 {w.f()}, {first}, {second};",
            f"copysign.f32 {w.f()}, {w.f()}, {w.f()};",
            f"testp.{test}.f32 {w.p()}, {w.f()};",
            f"mov.b32 {w.f()}, {w.r()};",
            f"mov.b32 {w.r()}, {w.f()};",
        )
    )


def _half(w: _Writer) -> str:
    name = w.pick(("add", "sub", "mul", "fma"))
    flags = w.pick(("", ".ftz")) + w.pick(("", ".sat"))
    if name == "fma" and w.rng.random() < 0.3:
        flags = ".relu"
    third = f", {w.h()}" if name == "fma" else ""
    return f"{name}.rn{flags}.f16 {w.h()}, {w.h()}, {w.h()}{third};"


def _half_pair(w: _Writer) -> str:
    name = w.pick(("add.rn", "mul.rn", "fma.rn", "min", "max", "min.NaN", "sub.rn"))
    third = f", {w.r()}" if name == "fma.rn" else ""
    first, second = w.two("r", _WORDS)
    return f"{name}.f16x2 {w.r()}, {first}, {second}{third};"


def _brain_pair(w: _Writer) -> str:
    if w.rng.random() < 0.5:
        first, second = w.two("r", _WORDS)
        return f"{w.pick(('min', 'max'))}.bf16x2 {w.r()}, {first}, {second};"
    return f"fma.rn{w.pick(('', '.relu'))}.bf16x2 {w.r()}, {w.r()}, {w.r()}, {w.r()};"


def _half_move(w: _Writer) -> str:
    return w.pick(
        (
            f"mov.b32 {w.r()}, {{{w.h()}, {w.h()}}};",
            f"mov.b32 {{{w.h()}, {w.h()}}}, {w.r()};",
        )
    )


def _double(w: _Writer) -> str:
    name = w.pick(("add", "sub", "mul", "fma"))
    third = f", {w.d()}" if name == "fma" else ""
    return f"{name}{w.pick(_ROUNDINGS)}.f64 {w.d()}, {w.d()}, {w.d()}{third};"


def _convert(w: _Writer) -> str:
    whole = w.pick(("rni", "rzi", "rmi", "rpi"))
    mode = w.pick(("rn", "rz", "rm", "rp"))
    flush = w.pick(("", ".ftz"))
    return w.pick(
        (
            f"cvt.{whole}{flush}.{w.pick('us')}32.f32 {w.r()}, {w.f()};",
            f"cvt.{mode}.f32.{w.pick('us')}32 {w.f()}, {w.r()};",
            f"cvt.{mode}.f16.f32 {w.h()}, {w.f()};",
            f"cvt.f32.f16 {w.f()}, {w.h()};",
            f"cvt.{mode}.f16.{w.pick('us')}32 {w.h()}, {w.r()};",
            f"cvt.{whole}.{w.pick('us')}32.f16 {w.r()}, {w.h()};",
            f"cvt.{mode}.f32.f64 {w.f()}, {w.d()};",
            f"cvt.f64.f32 {w.d()}, {w.f()};",
            f"cvt.rn.f64.{w.pick('us')}32 {w.d()}, {w.r()};",
            f"cvt.{whole}.s32.f64 {w.r()}, {w.d()};",
            f"cvt.{whole}.s64.f32 {w.l()}, {w.f()};",
            f"cvt.{mode}.f32.{w.pick('us')}64 {w.f()}, {w.l()};",
            f"cvt.{whole}.f32.f32 {w.f()}, {w.f()};",
            f"cvt.rn.f16x2.f32 {w.r()}, {w.f()}, {w.f()};",
            f"cvt.rn.bf16x2.f32 {w.r()}, {w.f()}, {w.f()};",
            f"cvt.sat.f32.f32 {w.f()}, {w.f()};",
            f"cvt.{w.pick(('s8', 'u8', 's16', 'u16'))}.{w.pick('us')}32 {w.r()}, {w.r()};",
            f"cvt.sat.{w.pick(('s8', 'u8', 's16', 'u16'))}.s32 {w.r()}, {w.r()};",
            f"cvt.{w.pick('us')}64.{w.pick('us')}32 {w.l()}, {w.r()};",
            f"cvt.u32.u64 {w.r()}, {w.l()};",
        )
    )


# ---- statements: memory, calls


def _local(w: _Writer) -> str:
    if w.rng.random() < 0.5:
        place = f"and.b32 %t0, {w.r()}, 28; mov.u32 %t1, stack; add.u32 %t1, %t1, %t0; "
        return place + w.pick((f"st.local.b32 [%t1], {w.r()};", f"ld.local.b32 {w.r()}, [%t1];"))
    at = f"[stack+{4 * w.rng.randrange(8)}]"
    return w.pick((f"st.local.b32 {at}, {w.r()};", f"ld.local.b32 {w.r()}, {at};"))


def _narrow_local(w: _Writer) -> str:
    kind, size = w.pick((("u8", 1), ("s8", 1), ("u16", 2), ("s16", 2)))
    at = f"[stack+{size * w.rng.randrange(32 // size)}]"
    return w.pick((f"st.local.{kind} {at}, {w.r()};", f"ld.local.{kind} {w.r()}, {at};"))


def _call(w: _Writer) -> str:
    return (
        "{ .param .b32 a; .param .b32 b; .param .b32 c; "
        f"st.param.b32 [a], {w.r()}; st.param.b32 [b], {w.r()}; "
        f"call (c), mix, (a, b); ld.param.b32 {w.r()}, [c]; }}"
    )


# ---- what needs all lanes together


def _shuffle(w: _Writer) -> None:
    mode = w.pick(("up", "down", "bfly", "idx"))
    width = w.pick((0, 0, 16, 24))  # segments of 32, 32, 16 and 8 lanes
    limit = (width << 8) | (0 if mode == "up" else 31)
    target = f"{w.r()}|{w.p()}" if w.rng.random() < 0.5 else w.r()
    w.lines.append(f"shfl.sync.{mode}.b32 {target}, {w.r()}, {w.ri()}, {limit}, 0xffffffff;")


def _vote(w: _Writer) -> None:
    w.lines.append(
        w.pick(
            (
                f"vote.sync.ballot.b32 {w.r()}, {w.p()}, 0xffffffff;",
                f"vote.sync.{w.pick(('any', 'all', 'uni'))}.pred {w.p()}, {w.p()}, 0xffffffff;",
                f"match.any.sync.b32 {w.r()}, {w.r()}, 0xffffffff;",
                f"match.all.sync.b32 {w.r()}|{w.p()}, {w.r()}, 0xffffffff;",
                (
                    f"redux.sync.{w.pick(('add', 'min', 'max'))}.{w.pick('us')}32 "
                    f"{w.r()}, {w.r()}, 0xffffffff;"
                ),
                f"redux.sync.{w.pick(('and', 'or', 'xor'))}.b32 {w.r()}, {w.r()}, 0xffffffff;",
            )
        )
    )


def _exchange(w: _Writer) -> None:
    w.lines += [
        "bar.sync 0;",
        f"st.shared.b32 [%own], {w.r()};",
        "bar.sync 0;",
        f"and.b32 %t0, {w.r()}, 63; mad.lo.u32 %t0, %t0, 4, %base;",
        f"ld.shared.b32 {w.r()}, [%t0];",
    ]


def _atomic(w: _Writer) -> None:
    op = w.pick(("add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "inc.u32"))
    # All have one bound, so that the order does not matter.
    value = "1000" if op == "inc.u32" else w.r()
    w.lines += [
        "bar.sync 0;",
        f"st.shared.b32 [%own], {w.pick(('0', '-1', '77'))};",
        "bar.sync 0;",
        f"and.b32 %t0, {w.r()}, 7; mad.lo.u32 %t0, %t0, 4, %base;",
        f"red.shared.{op} [%t0], {value};",
        "bar.sync 0;",
        f"and.b32 %t0, {w.r()}, 7; mad.lo.u32 %t0, %t0, 4, %base;",
        f"ld.shared.b32 {w.r()}, [%t0];",
    ]


_STATEMENTS: tuple[Callable[[_Writer], str], ...] = (
    *(_integer, _integer_three, _logic, _shift, _one, _field, _permute, _dot, _divide, _carry),
    *(_integer, _wide, _wide, _compare, _compare, _select, _local, _narrow_local, _call),
    *(_single, _single, _single, _single_slow, _single_order, _single_order, _half, _half),
    *(_half_pair, _brain_pair, _half_move, _double, _double, _convert, _convert, _convert),
)
_TOGETHER: tuple[Callable[[_Writer], None], ...] = (_shuffle, _shuffle, _vote, _exchange, _atomic)

_HEAD = f"""\
.version 7.8
.target sm_80
.address_size 64
.func (.param .b32 c) mix(.param .b32 a, .param .b32 b) {{
.reg .b32 %x, %y; .reg .pred %p;
ld.param.b32 %x, [a]; ld.param.b32 %y, [b];
setp.lt.s32 %p, %x, %y; @%p bra $M;
xor.b32 %x, %x, %y; mul.lo.u32 %x, %x, 0x9e3779b1;
$M: shf.l.wrap.b32 %x, %x, %y, 13; st.param.b32 [c], %x; ret;
}}
.visible .entry k(.param .u64 in, .param .u64 out) {{
.reg .b32 %r<{_WORDS}>, %c<4>, %t<2>, %me, %own, %base; .reg .f32 %f<{_SINGLES}>;
.reg .b16 %h<{_HALVES}>; .reg .b64 %l<{_LONGS}>, %at; .reg .f64 %d<{_DOUBLES}>;
.reg .pred %p<{_PREDICATES}>, %q<4>;
.local .align 8 .b8 stack[32]; .shared .align 8 .b8 box[{4 * THREADS}];
mov.u32 %me, %tid.x; mov.u32 %base, box; mad.lo.u32 %own, %me, 4, %base;
ld.param.u64 %at, [in]; cvta.to.global.u64 %at, %at;
mad.wide.u32 %at, %me, {4 * INPUTS}, %at;""".splitlines()
_HEAD += [f"ld.global.b32 %r{i}, [%at+{4 * i}];" for i in range(INPUTS)]
_HEAD += [f"mov.b32 %f{i}, %r{i + 4};" for i in range(_SINGLES)]
_HEAD += [f"mov.b32 {{%h{i}, %h{i + 1}}}, %r{i};" for i in range(0, _HALVES, 2)]
_HEAD += [f"mov.b64 %l{i}, {{%r{i}, %r{i + 1}}};" for i in range(_LONGS)]
_HEAD += [f"cvt.rn.f64.s32 %d{i}, %r{i};" for i in range(_DOUBLES)]
_HEAD += [f"setp.lt.s32 %p{i}, %r{i}, %r{i + 1};" for i in range(_PREDICATES)]
_HEAD += [f"st.local.b32 [stack+{4 * i}], %r{i};" for i in range(8)]

_TAIL = [
    "ld.param.u64 %at, [out]; cvta.to.global.u64 %at, %at;",
    f"mad.wide.u32 %at, %me, {4 * OUTPUTS}, %at;",
    *(f"st.global.b32 [%at+{4 * i}], %r{i};" for i in range(_WORDS)),
    *(f"st.global.f32 [%at+{4 * (_WORDS + i)}], %f{i};" for i in range(_SINGLES)),
    *(
        f"mov.b32 %t0, {{%h{2 * i}, %h{2 * i + 1}}}; "
        f"st.global.b32 [%at+{4 * (_WORDS + _SINGLES + i)}], %t0;"
        for i in range(_HALVES // 2)
    ),
    *(
        f"st.global.b64 [%at+{4 * (_WORDS + _SINGLES + _HALVES // 2) + 8 * i}], {name};"
        for i, name in enumerate(
            [f"%l{i}" for i in range(_LONGS)] + [f"%d{i}" for i in range(_DOUBLES)]
        )
    ),
    "ret; }",
]
