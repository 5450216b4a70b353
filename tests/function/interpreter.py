"""Programs run by a plain interpreter: what the native half is held against.

It knows nothing of the package but the numbers in ``docs/dev/functions.md``, which it takes from
the extension, and launches kernels as a user does.
"""

from __future__ import annotations

import builtins
import ctypes
import math
import operator
import struct

import numpy as np

from culaunch import _core

FORMAT = _core.program_format()
OPCODES = {number: (name, form) for name, (number, form) in FORMAT["opcodes"].items()}
MATH = {number: name for name, number in FORMAT["math"].items()}
EXCEPTIONS = {number: name for name, number in FORMAT["exceptions"].items()}
DTYPES = {number: name for name, number in FORMAT["dtypes"].items()}


MATH_OPCODE = FORMAT["opcodes"]["MATH"][0]


def function_of(name):
    """Return a function of math for floats only."""
    return (lambda x, y: math.ldexp(x, int(y))) if name == "ldexp" else getattr(math, name)


class Unknown(Exception):
    """A guard leads where the program does not go."""


def fitting(value):
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError("it does not fit 64 bits")
    return value


def as_float(word):
    return struct.unpack("<d", struct.pack("<q", word))[0]


def ceildiv(x, y):
    return -(-x // y)


def next_power_of_2(x):
    return 1 << (x - 1).bit_length() if x > 1 else 1


def shifted(x, y):
    if y > 64 and x:
        raise OverflowError
    return x << y


def power(x, y):
    if y < 0:
        raise ValueError("a negative power")
    if abs(x) > 1 and y > 64:
        raise OverflowError
    return x**y


def real_power(x, y):
    result = x**y
    if isinstance(result, complex):
        raise ValueError("complex")
    return result


PLAIN = {
    "FLOORDIV": operator.floordiv, "MOD": operator.mod, "ADD": operator.add, "SUB": operator.sub,
    "MUL": operator.mul, "POW": power, "NEG": operator.neg, "ABS": abs, "MIN": min, "MAX": max,
    "SHL": shifted, "SHR": operator.rshift, "AND": operator.and_, "OR": operator.or_,
    "XOR": operator.xor, "INVERT": operator.invert, "CEILDIV": ceildiv,
    "NEXT_POW2": next_power_of_2, "TRUEDIV": operator.truediv, "BIT_LENGTH": int.bit_length,
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le, "GT": operator.gt,
    "GE": operator.ge, "NOT": operator.not_, "AND_B": operator.and_, "OR_B": operator.or_,
    "XOR_B": operator.xor, "SELECT_I": lambda b, x, y: x if b else y, "FPOW": real_power,
    "FADD": operator.add, "FSUB": operator.sub, "FMUL": operator.mul, "FDIV": operator.truediv,
    "FFLOORDIV": operator.floordiv, "FMOD": operator.mod, "FNEG": operator.neg, "FABS": abs,
    "FMIN": min, "FMAX": max, "ISNAN": math.isnan, "ISINF": math.isinf, "ISFINITE": math.isfinite,
    "I2F": float, "FLOOR": math.floor, "CEIL": math.ceil, "TRUNC": math.trunc, "ROUND": round,
    "B2I": int,
}  # fmt: skip
PLAIN |= dict.fromkeys(("SELECT_F", "SELECT_B"), PLAIN["SELECT_I"])
for _prefix in ("F", "IF"):
    PLAIN |= {_prefix + name: PLAIN[name] for name in ("EQ", "NE", "LT", "LE", "GT", "GE")}


class Interpreter:
    """A program: ``run(values)`` runs it on the arguments of a call, NumPy's arrays among them."""

    def __init__(self, program):
        words = np.frombuffer(program.words, "<i8").tolist()
        version, _, self.array_arguments, self.arrays, n_blocks = words[:5]
        assert version == 2
        sizes, at = words[5 : 5 + n_blocks], 5 + n_blocks
        self.blocks = []
        for size in sizes:
            self.blocks.append(words[at : at + size])
            at += size
        assert at == len(words)
        self.constants, self.texts = program.constants, program.texts

    def run(self, values):
        self.values = values
        self.given = []
        for value in values:
            if isinstance(value, (list, tuple)) and value and isinstance(value[0], np.ndarray):
                self.given += value
            elif isinstance(value, np.ndarray):
                self.given.append(value)
        assert len(self.given) == self.array_arguments
        self.r = {}
        number = 0
        while True:
            following = self.block(self.blocks[number])
            if isinstance(following, list):
                return self.effects(following)
            if following == -1:
                raise Unknown
            assert following > number
            number = following

    def block(self, words):
        while True:
            opcode, count = words[0] & 0xFFFFFFFF, words[0] >> 32
            operands, words = words[1:count], words[count:]
            name, form = OPCODES[opcode]
            if name == "GUARD":
                assert not words
                return operands[1] if self.r[operands[0]] else operands[2]
            if name == "EFFECTS":
                return words
            self.instruction(name, form, operands)

    def instruction(self, name, form, operands):
        r = self.r
        if name == "CHECK":
            condition, text, exception, count, *shown = operands
            assert count == len(shown)
            if not r[condition]:
                kind = getattr(builtins, EXCEPTIONS[exception])
                raise kind(self.texts[text].format(*(r[one] for one in shown)))
            return
        if name in ("RANGE", "FLOAT_RANGE", "DIMENSION"):
            self.bounded(name, r[operands[0]], operands[1:])
            return
        result, *rest = operands
        assert result not in r
        array = self.given[rest[0]] if "a" in form else None
        if name.startswith("CONST_"):
            value = as_float(rest[0]) if name == "CONST_F" else rest[0]
            r[result] = bool(value) if name == "CONST_B" else value
        elif name in ("ARG_I", "ARG_F"):
            r[result] = (int if name == "ARG_I" else float)(self.values[rest[0]])
        elif name == "DIM":
            r[result] = array.shape[rest[1]]
        elif name == "STRIDE":
            r[result] = array.strides[rest[1]] // array.itemsize
        elif name == "CONTIGUOUS":
            r[result] = array.flags.c_contiguous
        elif name == "ADDRESS":
            r[result] = array.ctypes.data % 256
        elif name == "PLACE":
            r[result] = array.ctypes.data
        elif name == "MATH":
            function, x, y, _ = rest
            r[result] = function_of(MATH[function])(r[x], *([r[y]] if y >= 0 else []))
        elif name == "RAISES":
            operation, exception, function, x, y = rest
            compute = function_of(MATH[function]) if operation == MATH_OPCODE else pow
            try:
                compute(r[x], *([r[y]] if y >= 0 else []))
                r[result] = False
            except (ValueError, ArithmeticError) as error:
                r[result] = isinstance(error, getattr(builtins, EXCEPTIONS[exception]))
        else:
            reads = [
                r[word] for word, letter in zip(rest, form[1:], strict=True) if letter in "ifb"
            ]
            value = PLAIN[name](*reads)
            r[result] = fitting(value) if form[0] == "I" else value

    def bounded(self, name, value, limits):
        if name == "DIMENSION":
            if not 1 <= value <= limits[0]:
                raise ValueError("a dimension")
        elif name == "FLOAT_RANGE":
            code, bits, _ = limits
            if bits != 64 and math.isfinite(value):
                assert code == 2
                struct.pack("<e" if bits == 16 else "<f", value)
        else:
            size, is_signed, _ = limits
            low = 0 if is_signed == 0 else -(1 << 8 * size - 1)
            if not low <= value < (1 << 8 * size - (is_signed == 1)):
                raise OverflowError("a parameter")

    # ---- effects

    def effects(self, words):
        self.a = dict(enumerate(self.given))
        while True:
            code, count = words[0] & 0xFFFFFFFF, words[0] >> 32
            operands, words = words[1:count], words[count:]
            if code == 1:
                array, dtype, fill, rank, *shape, _ = operands
                assert rank == len(shape)
                make = np.zeros if fill else np.empty
                self.a[array] = make([self.r[one] for one in shape], DTYPES[dtype])
            elif code == 2:
                self.view(*operands)
            elif code == 4:
                self.launch(iter(operands))
            elif code == 6:
                assert not words
                return self.result(iter(operands))
            else:
                raise AssertionError(code)

    def view(self, array, source, offset, dtype, rank, *numbers):
        base = self.a[source]
        dtype = np.dtype(DTYPES[dtype])
        shape = [self.r[one] for one in numbers[:rank]]
        strides = [self.r[one] * dtype.itemsize for one in numbers[rank : 2 * rank]]
        interface = {
            "version": 3, "shape": tuple(shape), "strides": tuple(strides), "typestr": dtype.str,
            "data": (base.ctypes.data + self.r[offset], not base.flags.writeable),
        }  # fmt: skip
        holder = type("Memory", (), {"__array_interface__": interface, "base": base})()
        self.a[array] = np.asarray(holder)

    def launch(self, words):
        take = lambda count: [next(words) for _ in range(count)]  # noqa: E731
        kernel, _, predicate = take(3)
        dims, (shared, _, _, count) = take(12), take(4)
        arguments = [self.parameter(words, take) for _ in range(count)]
        if predicate >= 0 and not self.r[predicate]:
            return
        self.constants[kernel].launch(
            *arguments,
            grid=tuple(self.r[one] for one in dims[:3]),
            block=tuple(self.r[one] for one in dims[3:6]),
            shared_memory=self.r[shared] if shared >= 0 else 0,
        )

    def parameter(self, words, take):
        kind, _, size = take(3)
        if kind == 0:
            return self.a[next(words)].ctypes.data
        if kind in (1, 3):
            return self.r[next(words)]
        if kind == 2:
            register, _, bits = take(3)
            assert bits == 8 * size
            return self.r[register]
        if kind == 4:
            constant, patches = take(2)
            data = bytearray(self.constants[constant])
            for _ in range(patches):
                self.patch(data, words, take)
            return (ctypes.c_char * size).from_buffer(data)
        if kind == 5:
            return None
        assert kind == 7
        return self.constants[next(words)]

    def patch(self, data, words, take):
        kind, offset, size = take(3)
        if kind == 2:
            register, _, bits = take(3)
            struct.pack_into("<f" if bits == 32 else "<d", data, offset, self.r[register])
            return
        value = self.a[next(words)].ctypes.data if kind == 0 else int(self.r[next(words)])
        data[offset : offset + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def result(self, words):
        kind = next(words)
        if kind == 0:
            return None
        if kind in (1, 2, 3):
            return self.r[next(words)]
        if kind == 4:
            return self.a[next(words)]
        if kind == 5:
            return self.values[next(words)]
        if kind == 6:
            return self.constants[next(words)]
        if kind == 11:
            return self.values[next(words)][next(words)]
        if kind == 9:
            return {self.texts[next(words)]: self.result(words) for _ in range(next(words))}
        called = self.constants[next(words)] if kind == 10 else tuple if kind == 7 else list
        items = [self.result(words) for _ in range(next(words))]
        return called(*items) if kind == 10 else called(items)
