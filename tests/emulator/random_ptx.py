"""Random PTX programs whose results PTX defines to the last bit, and their inputs.

A program is one block of 64 threads. Each reads eight words and computes in integer, f16, f32 and
f64 registers, in divergent branches and bounded loops. It exchanges values with other lanes in
shuffles, votes, reductions and shared memory, and stores its registers.

Programs avoid everything that PTX leaves open: approximations, divisions by zero, shuffles from
lanes elsewhere, the order of float additions. They also avoid the cases in which ptxas differs from
PTX. It folds negations, and ``min`` and ``max`` of a float with itself (for any NaN). It drops the
guard of ``testp``. It reads constant positions and lengths of ``bfe`` and ``bfi`` past 31
differently.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
from random_statements import (
    DOUBLES,
    HALVES,
    LONGS,
    PREDICATES,
    SINGLES,
    STATEMENTS,
    TOGETHER,
    WORDS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

THREADS = 64
INPUTS = 8
# Words that a thread stores.
OUTPUTS = WORDS + SINGLES + HALVES // 2 + 2 * (LONGS + DOUBLES)
NAMES = (
    *(f"%r{i}" for i in range(WORDS)),
    *(f"%f{i}" for i in range(SINGLES)),
    *(f"%h{2 * i}|%h{2 * i + 1}" for i in range(HALVES // 2)),
    *(f"%{kind}{i}.{part}" for kind in "ld" for i in range(2) for part in ("low", "high")),
)


def program(seed: int) -> str:
    """Return the PTX of the program number `seed`; its kernel is called ``k``."""
    return Writer(random.Random(seed)).text()


def inputs(seed: int) -> np.ndarray:
    """Return the words that it reads: any bits, small numbers, numbers near one, corners of f32.

    They are made from integers only, so they are the same with every version of NumPy.
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


class Writer:
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
        """Write some statements; if all lanes are `together`, also such as need that."""
        for _ in range(count):
            kind = self.rng.random()
            if kind < 0.12 and self.depth < 3:
                self.pick((self.branch, self.branch, self.loop, self.switch))()
            elif kind < 0.30 and together:
                self.pick(TOGETHER)(self)
            else:
                self.statement()

    def statement(self) -> None:
        code = self.pick(STATEMENTS)(self)
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
        return f"%r{self.rng.randrange(WORDS)}"

    def f(self) -> str:
        return f"%f{self.rng.randrange(SINGLES)}"

    def h(self) -> str:
        return f"%h{self.rng.randrange(HALVES)}"

    def l(self) -> str:  # noqa: E743
        return f"%l{self.rng.randrange(LONGS)}"

    def d(self) -> str:
        return f"%d{self.rng.randrange(DOUBLES)}"

    def p(self) -> str:
        return f"%p{self.rng.randrange(PREDICATES)}"

    def two(self, kind: str, count: int) -> list[str]:
        """Return two different registers."""
        return [f"%{kind}{i}" for i in self.rng.sample(range(count), 2)]

    def ri(self) -> str:
        """Return a register or an immediate."""
        if self.rng.random() < 0.7:
            return self.r()
        return str(self.pick((0, 1, -1, 31, 255, 0x12345678, self.rng.getrandbits(31))))


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
.reg .b32 %r<{WORDS}>, %c<4>, %t<2>, %me, %own, %base; .reg .f32 %f<{SINGLES}>;
.reg .b16 %h<{HALVES}>; .reg .b64 %l<{LONGS}>, %at; .reg .f64 %d<{DOUBLES}>;
.reg .pred %p<{PREDICATES}>, %q<4>;
.local .align 8 .b8 stack[32]; .shared .align 8 .b8 box[{4 * THREADS}];
mov.u32 %me, %tid.x; mov.u32 %base, box; mad.lo.u32 %own, %me, 4, %base;
ld.param.u64 %at, [in]; cvta.to.global.u64 %at, %at;
mad.wide.u32 %at, %me, {4 * INPUTS}, %at;""".splitlines()
_HEAD += [f"ld.global.b32 %r{i}, [%at+{4 * i}];" for i in range(INPUTS)]
_HEAD += [f"mov.b32 %f{i}, %r{i + 4};" for i in range(SINGLES)]
_HEAD += [f"mov.b32 {{%h{i}, %h{i + 1}}}, %r{i};" for i in range(0, HALVES, 2)]
_HEAD += [f"mov.b64 %l{i}, {{%r{i}, %r{i + 1}}};" for i in range(LONGS)]
_HEAD += [f"cvt.rn.f64.s32 %d{i}, %r{i};" for i in range(DOUBLES)]
_HEAD += [f"setp.lt.s32 %p{i}, %r{i}, %r{i + 1};" for i in range(PREDICATES)]
_HEAD += [f"st.local.b32 [stack+{4 * i}], %r{i};" for i in range(8)]

_TAIL = [
    "ld.param.u64 %at, [out]; cvta.to.global.u64 %at, %at;",
    f"mad.wide.u32 %at, %me, {4 * OUTPUTS}, %at;",
    *(f"st.global.b32 [%at+{4 * i}], %r{i};" for i in range(WORDS)),
    *(f"st.global.f32 [%at+{4 * (WORDS + i)}], %f{i};" for i in range(SINGLES)),
    *(
        f"mov.b32 %t0, {{%h{2 * i}, %h{2 * i + 1}}}; "
        f"st.global.b32 [%at+{4 * (WORDS + SINGLES + i)}], %t0;"
        for i in range(HALVES // 2)
    ),
    *(
        f"st.global.b64 [%at+{4 * (WORDS + SINGLES + HALVES // 2) + 8 * i}], {name};"
        for i, name in enumerate(
            [f"%l{i}" for i in range(LONGS)] + [f"%d{i}" for i in range(DOUBLES)]
        )
    ),
    "ret; }",
]
