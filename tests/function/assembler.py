"""Programs by hand: an assembler of the encoding that docs/dev/functions.md describes."""

from __future__ import annotations

import contextlib
import struct

from culaunch import _core

FORMAT = _core.program_format()
OPCODES = FORMAT["opcodes"]


def bits(value):
    """Give the word of a float."""
    return struct.unpack("<q", struct.pack("<d", value))[0]


class Assembler:
    """One program; registers and arrays are numbered as they are defined."""

    def __init__(self, arrays=0):
        self.argument_arrays = arrays
        self.arrays = arrays
        self.registers = 0
        self.constants = []
        self.texts = []
        self.blocks = [[]]
        self.effects = []
        self.has_text = []
        self.effect_text = -1  # of the next effects, except launches
        self.texts_at = []  # the blocks, and the places in them, of effects that have one

    def text(self, text):
        self.texts.append(text)
        return len(self.texts) - 1

    def constant(self, value):
        self.constants.append(value)
        return len(self.constants) - 1

    def op(self, name, *operands, text=-1):
        """Append an instruction; give the register of its result, if it has one."""
        code, form = OPCODES[name]
        words, given, result = [], iter(operands), None
        for letter in form:
            if letter in "IFB":
                result = self.registers
                self.registers += 1
                words.append(result)
            elif letter == "t":
                words.append(self.text(text) if isinstance(text, str) else text)
            elif letter == "g":
                words.append(next(given, -1))
            elif letter == "m":
                words.append(FORMAT["math"][next(given)])
            elif letter == "*":
                words += list(given)
            else:
                words.append(next(given))
        self.blocks[-1] += [code | (len(words) + 1) << 32, *words]
        return result

    def i(self, value):
        return self.op("CONST_I", value)

    def f(self, value):
        return self.op("CONST_F", bits(value))

    def check(self, condition, text, *registers, exception="ValueError"):
        number = FORMAT["exceptions"][exception]
        self.op("CHECK", condition, number, len(registers), *registers, text=text)

    def guard(self, condition, if_true, if_false):
        self.op("GUARD", condition, if_true, if_false)
        self.blocks.append([])

    # ---- effects

    def effect(self, name, *words):
        if name not in ("launch", "return"):
            words = (*words, self.effect_text)
        self.effects.append([FORMAT["effects"][name] | (len(words) + 1) << 32, *words])
        self.has_text.append(name not in ("launch", "return"))

    def new_array(self):
        self.arrays += 1
        return self.arrays - 1

    def allocate(self, dtype, shape, zeros=False):
        array = self.new_array()
        number = FORMAT["dtypes"][dtype]
        self.effect("allocate", array, number, int(zeros), len(shape), *shape)
        return array

    def view(self, source, offset, dtype, shape, strides):
        array = self.new_array()
        number = FORMAT["dtypes"][dtype]
        self.effect("view", array, source, offset, number, len(shape), *shape, *strides)
        return array

    def memset(self, array, value, size, predicate=-1):
        self.effect("memset", array, value, size, predicate)

    def launch(self, kernel, grid, block, *parts, predicate=-1, text=-1, flags=0,
               cluster=(-1, -1, -1), preferred=(-1, -1, -1), shared=-1, priority=-1):  # fmt: skip
        """Parts are (source, offset, size, *operands)."""
        text = self.text(text) if isinstance(text, str) else text
        words = [word for part in parts for word in self.part(*part)]
        self.effect("launch", self.constant(kernel), flags, predicate, *grid, *block, *cluster,
                    *preferred, shared, priority, text, len(parts), *words)  # fmt: skip

    @staticmethod
    def part(source, offset, size, *operands):
        return [FORMAT["sources"][source], offset, size, *operands]

    def call(self, callable_, arguments, outputs=(), predicate=-1):
        """Arguments are (kind, index)."""
        words = [word for kind, at in arguments for word in (FORMAT["values"][kind], at)]
        self.effect("call", self.constant(callable_), predicate, len(arguments), *words,
                    len(outputs), *outputs)  # fmt: skip

    def give(self, *result):
        """End the block: ``give("none")``, ``give("int", r)``, ``give("tuple", [...])``."""
        self.effect("return", *self.result(*result))
        self.blocks[-1] += [OPCODES["EFFECTS"][0] | 2 << 32, len(self.effects)]
        for effect, has_text in zip(self.effects, self.has_text, strict=True):
            if has_text:
                self.texts_at.append((len(self.blocks) - 1, len(self.blocks[-1])))
            self.blocks[-1] += effect
        self.effects, self.has_text = [], []
        self.blocks.append([])

    def result(self, kind, *operands):
        number = FORMAT["values"][kind]
        if kind == "dict":
            pairs = [(self.text(key), *self.result(*value)) for key, value in operands[0].items()]
            return [number, len(pairs), *(word for pair in pairs for word in pair)]
        if kind in ("tuple", "list", "called"):
            items = operands[-1]
            head = [self.constant(operands[0])] if kind == "called" else []
            inner = [word for item in items for word in self.result(*item)]
            return [number, *head, len(items), *inner]
        return [number, *operands]

    def words(self, version=2):
        blocks = [list(block) for block in self.blocks if block]
        if version == 1:  # which had none of these texts
            for number, at in reversed(self.texts_at):
                head = blocks[number][at]
                blocks[number].pop(at + (head >> 32) - 1)
                blocks[number][at] = head - (1 << 32)
        head = [version, self.registers, self.argument_arrays, self.arrays, len(blocks)]
        words = [*head, *(len(block) for block in blocks), *(w for block in blocks for w in block)]
        return [word - (1 << 64) if word >= 1 << 63 else word for word in words]

    def bytes(self):
        words = self.words()
        return struct.pack(f"<{len(words)}q", *words)

    def program(self):
        return _core.Program(self.bytes(), tuple(self.constants), tuple(self.texts))


class Traced(_core.Function):
    """A function whose programs come from a list, one for each trace."""

    def __new__(cls, names="", *programs, defaults=(), keyword_only=()):
        parameters = [(name, 2 if name in keyword_only else 1) for name in names.split()]
        values = (cls.missing,) * (len(parameters) - len(defaults)) + tuple(defaults)
        self = super().__new__(cls, "f", tuple(parameters), values)
        self.programs = list(programs)
        self.traces = []
        self.reads = ()
        self.failures = []
        return self

    def _trace(self, arguments):
        self.traces.append(self._kind(arguments))
        with contextlib.suppress(IndexError):
            self._add(self.traces[-1], self.programs.pop(0), self.reads)

    def _fail(self, number, detail, text, values):
        self.failures.append((number, detail, text, values))


def nothing(arrays=0):
    """Assemble ``return``."""
    a = Assembler(arrays)
    a.give("none")
    return a.program()


def identity(arrays=0):
    """Assemble the return of the first argument."""
    a = Assembler(arrays)
    a.give("argument", 0)
    return a.program()
