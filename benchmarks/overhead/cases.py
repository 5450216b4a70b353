"""The kernels that are launched, with their sources for every contender."""

from __future__ import annotations

from dataclasses import dataclass

GRID = 1
BLOCK = 128  # Triton's default of four warps; every contender launches the same
ELEMENTS = 1024  # of each array


@dataclass(frozen=True)
class Case:
    """One kernel: pointers first, then ints, then floats.

    It writes the sum of all its other arguments to its first array. So a wrong argument changes the
    result. Every number is exact in float32.
    """

    key: str
    pointers: int
    ints: int = 0
    floats: int = 0

    @property
    def count(self) -> int:
        """The number of parameters."""
        return self.pointers + self.ints + self.floats

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each parameter, in bytes."""
        return (8,) * self.pointers + (4,) * (self.ints + self.floats)

    @property
    def int_values(self) -> tuple[int, ...]:
        """The ints: not 1 and not multiples of 16, because Triton specializes these."""
        return tuple(ELEMENTS + 3 + 2 * i for i in range(self.ints))

    @property
    def float_values(self) -> tuple[float, ...]:
        """The floats."""
        return tuple(0.5 + i for i in range(self.floats))

    @property
    def expected(self) -> float:
        """The first element of the first array after the launch; array k holds k."""
        return float(sum(range(1, self.pointers)) + sum(self.int_values) + sum(self.float_values))

    @property
    def name(self) -> str:
        """The name in the sources."""
        return f"bench_{self.key}"

    @property
    def mangled(self) -> str:
        """The name in the image: the types in it are what culaunch checks arguments against."""
        pointers = ("Pf" + "S_" * (self.pointers - 1)) if self.pointers else ""
        types = pointers + "i" * self.ints + "f" * self.floats
        return f"_Z{len(self.name)}{self.name}{types or 'v'}"

    @property
    def names(self) -> list[str]:
        """Parameter names, in order."""
        kinds = "p" * self.pointers + "i" * self.ints + "f" * self.floats
        return [f"{kind}{index}" for index, kind in enumerate(kinds)]

    @property
    def cuda(self) -> str:
        """The kernel in CUDA C++."""
        types = {"p": "float* ", "i": "int ", "f": "float "}
        params = ", ".join(types[name[0]] + name for name in self.names)
        return f"__global__ void {self.name}({params}) {{ {self._body('if (threadIdx.x == 0)')} }}"

    @property
    def triton(self) -> str:
        """The kernel in Triton's language."""
        values = [f"tl.load({n})" if n[0] == "p" else n for n in self.names[1:]]
        body = f"tl.store(p0, {' + '.join(values) or '0.0'})" if self.pointers else "pass"
        return f"@triton.jit\ndef {self.name}({', '.join(self.names)}):\n    {body}\n"

    def _body(self, guard: str) -> str:
        if not self.pointers:
            return ""
        values = [f"{n}[0]" if n[0] == "p" else f"(float){n}" for n in self.names[1:]]
        return f"{guard} p0[0] = {' + '.join(values) or '0.0f'};"


#: The five kernels that every contender launches: 0, 4, 8, 19 and 58 parameters.
CASES = (
    Case("0", 0),
    Case("4", 3, 1),
    Case("8", 3, 3, 2),
    Case("19", 7, 9, 3),
    Case("58", 20, 26, 12),
)
MAIN = CASES[1]
#: Those of a smoke run: C++ for many parameters takes a minute to compile.
QUICK_CASES = CASES[:2]
COUNTS = (1, 2, 4, 8, 16)
#: For the cost of one more argument: kernels that differ only in the number of one kind.
TENSOR_CASES = tuple(Case(f"tensors{n}", n) for n in COUNTS)
INT_CASES = tuple(Case(f"ints{n}", 1, n) for n in COUNTS)
FLOAT_CASES = tuple(Case(f"floats{n}", 1, 0, n) for n in COUNTS)
SLOPE_CASES = TENSOR_CASES + INT_CASES + FLOAT_CASES


def cuda_source() -> str:
    """Return the translation unit with every kernel."""
    return "\n".join(case.cuda for case in CASES + SLOPE_CASES)


def fake_cubin() -> bytes:
    """Return the smallest bytes that say they are a cubin for sm_90, for the null driver."""
    header = bytearray(64)
    header[:9] = b"\x7fELF\x02\x01\x01\x41\x08"
    header[16:24] = (2).to_bytes(2, "little") + (190).to_bytes(2, "little") + b"\x01\0\0\0"
    header[48:52] = (90 << 8).to_bytes(4, "little")
    header[52:54] = (64).to_bytes(2, "little")
    return bytes(header)
