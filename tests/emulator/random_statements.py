"""The statements of random PTX programs: each function writes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from random_ptx import Writer

# How many registers of each kind a program has.
WORDS, SINGLES, HALVES, LONGS, DOUBLES, PREDICATES = 8, 4, 4, 2, 2, 4
_ROUNDINGS = (".rn", ".rz", ".rm", ".rp")
_COMPARES = ("eq", "ne", "lt", "le", "gt", "ge")
_FLOAT_COMPARES = (*_COMPARES, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


# ---- statements: integers


def _integer(w: Writer) -> str:
    t = w.pick(("u32", "s32"))
    op = w.pick(("add", "sub", "mul.lo", "mul.hi", "min", "max", "mul24.lo"))
    return f"{op}.{t} {w.r()}, {w.r()}, {w.ri()};"


def _integer_three(w: Writer) -> str:
    t = w.pick(("u32", "s32"))
    return f"{w.pick(('mad.lo', 'mad.hi', 'sad'))}.{t} {w.r()}, {w.r()}, {w.ri()}, {w.r()};"


def _logic(w: Writer) -> str:
    if w.rng.random() < 0.3:
        table = w.rng.randrange(256)
        return f"lop3.b32 {w.r()}, {w.r()}, {w.ri()}, {w.r()}, {table};"
    return f"{w.pick(('and', 'or', 'xor'))}.b32 {w.r()}, {w.r()}, {w.ri()};"


def _shift(w: Writer) -> str:
    if w.rng.random() < 0.4:
        op = f"shf.{w.pick('lr')}.{w.pick(('wrap', 'clamp'))}.b32"
        return f"{op} {w.r()}, {w.r()}, {w.r()}, {w.ri()};"
    return f"{w.pick(('shl.b32', 'shr.u32', 'shr.s32'))} {w.r()}, {w.r()}, {w.ri()};"


def _one(w: Writer) -> str:
    ops = ("not.b32", "neg.s32", "abs.s32", "popc.b32", "clz.b32", "brev.b32", "cnot.b32")
    ops += ("bfind.u32", "bfind.s32", "bfind.shiftamt.u32")
    return f"{w.pick(ops)} {w.r()}, {w.r()};"


def _field(w: Writer) -> str:
    at, length = (w.pick((w.r(), str(w.rng.randrange(32)))) for _ in range(2))
    if w.rng.random() < 0.5:
        return f"bfe.{w.pick('us')}32 {w.r()}, {w.r()}, {at}, {length};"
    return f"bfi.b32 {w.r()}, {w.r()}, {w.r()}, {at}, {length};"


def _permute(w: Writer) -> str:
    mode = w.pick(("", "", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"))
    return f"prmt.b32{mode} {w.r()}, {w.r()}, {w.r()}, {w.ri()};"


def _dot(w: Writer) -> str:
    op = w.pick(("dp4a", "dp2a.lo", "dp2a.hi"))
    return f"{op}.{w.pick('us')}32.{w.pick('us')}32 {w.r()}, {w.r()}, {w.r()}, {w.r()};"


def _divide(w: Writer) -> str:
    return (
        f"or.b32 %t0, {w.r()}, 1; and.b32 %t0, %t0, 0x7fffffff; "
        f"{w.pick(('div', 'rem'))}.{w.pick('us')}32 {w.r()}, {w.r()}, %t0;"
    )


def _carry(w: Writer) -> str:
    def step(name: str) -> str:
        third = f", {w.r()}" if name.startswith("mad") else ""
        return f"{name}.u32 {w.r()}, {w.r()}, {w.ri()}{third};"

    middle = ("addc.cc", "subc.cc", "madc.lo.cc", "madc.hi.cc")
    chain = [w.pick(("add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc"))]
    chain += [w.pick(middle) for _ in range(w.pick((0, 0, 1, 2)))]
    chain += [w.pick(middle).removesuffix(".cc")]
    return " ".join(map(step, chain))


def _wide(w: Writer) -> str:
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


def _compare(w: Writer) -> str:
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
        both = w.rng.sample(range(PREDICATES), 2)
        op = f"setp.{compare}.{w.pick(('and', 'or', 'xor'))}.{t}"
        return f"{op} %p{both[0]}|%p{both[1]}, {w.r()}, {w.ri()}, {w.p()};"
    if kind < 0.8:
        return f"set.{compare}.u32.{t} {w.r()}, {w.r()}, {w.r()};"
    return f"setp.{compare}.{t} {w.p()}, {w.r()}, {w.ri()};"


def _select(w: Writer) -> str:
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


def _single(w: Writer) -> str:
    flags = w.pick(_ROUNDINGS) + w.pick(("", "", ".ftz")) + w.pick(("", "", ".sat"))
    name = w.pick(("add", "sub", "mul", "fma"))
    third = f", {w.f()}" if name == "fma" else ""
    return f"{name}{flags}.f32 {w.f()}, {w.f()}, {w.f()}{third};"


def _single_slow(w: Writer) -> str:
    name = w.pick(("div", "rcp", "sqrt"))
    second = f", {w.f()}" if name == "div" else ""
    return f"{name}{w.pick(_ROUNDINGS)}{w.pick(('', '.ftz'))}.f32 {w.f()}, {w.f()}{second};"


def _single_order(w: Writer) -> str:
    flags = w.pick(("", ".ftz")) + w.pick(("", ".NaN"))
    first, second = w.two("f", SINGLES)
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


def _half(w: Writer) -> str:
    name = w.pick(("add", "sub", "mul", "fma"))
    flags = w.pick(("", ".ftz")) + w.pick(("", ".sat"))
    if name == "fma" and w.rng.random() < 0.3:
        flags = ".relu"
    third = f", {w.h()}" if name == "fma" else ""
    return f"{name}.rn{flags}.f16 {w.h()}, {w.h()}, {w.h()}{third};"


def _half_pair(w: Writer) -> str:
    name = w.pick(("add.rn", "mul.rn", "fma.rn", "min", "max", "min.NaN", "sub.rn"))
    third = f", {w.r()}" if name == "fma.rn" else ""
    first, second = w.two("r", WORDS)
    return f"{name}.f16x2 {w.r()}, {first}, {second}{third};"


def _brain_pair(w: Writer) -> str:
    if w.rng.random() < 0.5:
        first, second = w.two("r", WORDS)
        return f"{w.pick(('min', 'max'))}.bf16x2 {w.r()}, {first}, {second};"
    return f"fma.rn{w.pick(('', '.relu'))}.bf16x2 {w.r()}, {w.r()}, {w.r()}, {w.r()};"


def _half_move(w: Writer) -> str:
    return w.pick(
        (
            f"mov.b32 {w.r()}, {{{w.h()}, {w.h()}}};",
            f"mov.b32 {{{w.h()}, {w.h()}}}, {w.r()};",
        )
    )


def _double(w: Writer) -> str:
    name = w.pick(("add", "sub", "mul", "fma"))
    third = f", {w.d()}" if name == "fma" else ""
    return f"{name}{w.pick(_ROUNDINGS)}.f64 {w.d()}, {w.d()}, {w.d()}{third};"


def _convert(w: Writer) -> str:
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


def _local(w: Writer) -> str:
    if w.rng.random() < 0.5:
        place = f"and.b32 %t0, {w.r()}, 28; mov.u32 %t1, stack; add.u32 %t1, %t1, %t0; "
        return place + w.pick((f"st.local.b32 [%t1], {w.r()};", f"ld.local.b32 {w.r()}, [%t1];"))
    at = f"[stack+{4 * w.rng.randrange(8)}]"
    return w.pick((f"st.local.b32 {at}, {w.r()};", f"ld.local.b32 {w.r()}, {at};"))


def _narrow_local(w: Writer) -> str:
    kind, size = w.pick((("u8", 1), ("s8", 1), ("u16", 2), ("s16", 2)))
    at = f"[stack+{size * w.rng.randrange(32 // size)}]"
    return w.pick((f"st.local.{kind} {at}, {w.r()};", f"ld.local.{kind} {w.r()}, {at};"))


def _call(w: Writer) -> str:
    return (
        "{ .param .b32 a; .param .b32 b; .param .b32 c; "
        f"st.param.b32 [a], {w.r()}; st.param.b32 [b], {w.r()}; "
        f"call (c), mix, (a, b); ld.param.b32 {w.r()}, [c]; }}"
    )


# ---- what needs all lanes together


def _shuffle(w: Writer) -> None:
    mode = w.pick(("up", "down", "bfly", "idx"))
    width = w.pick((0, 0, 16, 24))  # segments of 32, 32, 16 and 8 lanes
    limit = (width << 8) | (0 if mode == "up" else 31)
    target = f"{w.r()}|{w.p()}" if w.rng.random() < 0.5 else w.r()
    w.lines.append(f"shfl.sync.{mode}.b32 {target}, {w.r()}, {w.ri()}, {limit}, 0xffffffff;")


def _vote(w: Writer) -> None:
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


def _exchange(w: Writer) -> None:
    w.lines += [
        "bar.sync 0;",
        f"st.shared.b32 [%own], {w.r()};",
        "bar.sync 0;",
        f"and.b32 %t0, {w.r()}, 63; mad.lo.u32 %t0, %t0, 4, %base;",
        f"ld.shared.b32 {w.r()}, [%t0];",
    ]


def _atomic(w: Writer) -> None:
    op = w.pick(("add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "inc.u32"))
    # All have one bound, so the order does not matter.
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


STATEMENTS: tuple[Callable[[Writer], str], ...] = (
    *(_integer, _integer_three, _logic, _shift, _one, _field, _permute, _dot, _divide, _carry),
    *(_integer, _wide, _wide, _compare, _compare, _select, _local, _narrow_local, _call),
    *(_single, _single, _single, _single_slow, _single_order, _single_order, _half, _half),
    *(_half_pair, _brain_pair, _half_move, _double, _double, _convert, _convert, _convert),
)
TOGETHER: tuple[Callable[[Writer], None], ...] = (_shuffle, _shuffle, _vote, _exchange, _atomic)
