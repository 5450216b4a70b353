"""Which engine runs a launch, and what a launch leaves behind that the compiled one gives up."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from emulate import image_of, launch, pack
from emulator_internals import (
    CompiledKernel,
    Device,
    Fault,
    InstructionCount,
    NamedArray,
    Options,
    compiled_kernel,
)

if TYPE_CHECKING:
    from emulator_internals import LoadedModule

pytestmark = pytest.mark.needs("gcc")

HEAD = """
.version 8.7
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 n) {
    .reg .pred %p, %q; .reg .b32 %i, %n, %v, %w, %y; .reg .b64 %at, %d; .reg .f64 %f, %g;
    .shared .align 16 .b8 box[256];
    mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %v, %tid.x; mad.lo.u32 %i, %i, %n, %v;
    ld.param.u64 %at, [x]; ld.param.u32 %n, [n]; mad.wide.u32 %at, %i, 4, %at;
"""
DOUBLE = "ld.global.u32 %v, [%at]; add.u32 %v, %v, %v; st.global.u32 [%at], %v; ret; }"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "compiled")


def run(body: str, x: np.ndarray, n: int = 0, **how: Any) -> CompiledKernel:
    """Launch a body on an array; return the kernel in the compiled engine."""
    return state_of(launch(HEAD + body, "k", x, np.uint32(n), **how))


def state_of(module: LoadedModule) -> CompiledKernel:
    return compiled_kernel(module.code("k"))


def both(body: str, x: np.ndarray, monkeypatch: pytest.MonkeyPatch, **how: Any) -> list[Any]:
    """Return what each engine leaves in the array, and the fault that it ends with."""
    ends = []
    for name in ("numpy", "compiled"):
        monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", name)
        y, fault = x.copy(), None
        try:
            run(body, y, len(y), **how)
        except Fault as error:
            place = error.block, error.thread, error.line
            fault = (error.code, error.reason.partition(" 0x")[0], place)
        ends.append((y.tolist(), fault))
    return ends


@pytest.mark.usefixtures("compiled")
def test_a_compiled_kernel_computes() -> None:
    x = np.arange(4096, dtype="u4")
    state = run(DOUBLE, x, grid=(64,), block=(64,))
    assert state.ran == 1
    np.testing.assert_array_equal(x, 2 * np.arange(4096))


FAULTY = {
    "past the end": "setp.gt.u32 %p, %i, 50; @%p add.u64 %at, %at, 4096;" + DOUBLE,
    "misaligned": "setp.eq.u32 %p, %i, 9; @%p add.u64 %at, %at, 2;" + DOUBLE,
    "shared": "shl.b32 %v, %i, 3; st.shared.u32 [%v], %i; st.global.u32 [%at], %i; ret; }",
    "undefined": "shl.b32 %v, %i, 2; setp.lt.u32 %p, %i, 60; @%p st.shared.u32 [%v], %i;"
    "bar.sync 0; ld.shared.u32 %v, [%v]; st.global.u32 [%at], %v; ret; }",
    "half a barrier": "st.global.u32 [%at], %i; setp.lt.u32 %p, %i, 32; @%p bar.sync 0;"
    "add.u32 %i, %i, 1; st.global.u32 [%at], %i; ret; }",
    "another's lane": "setp.lt.u32 %p, %i, 7; @%p bra out; shfl.sync.idx.b32 %v, %i, 3, 31, 127;"
    "st.global.u32 [%at], %v; out: ret; }",
    "trap": "st.global.u32 [%at], %i; setp.eq.u32 %p, %i, 11; @%p trap; ret; }",
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_the_numpy_engines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(64, dtype="u4") + 1000
    by_numpy, by_compiled = both(FAULTY[name], x, monkeypatch, block=(64,))
    assert by_numpy[1] is not None
    assert by_compiled == by_numpy


def test_memory_is_put_back_before_the_other_engine_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each word is doubled in place, on many pages: twice would show. The last thread of the grid
    # is what the compiled engine does not do.
    body = (
        "ld.global.u32 %v, [%at]; add.u32 %v, %v, %v; st.global.u32 [%at], %v;"
        "sub.u32 %n, %n, 1; setp.eq.u32 %p, %i, %n; @!%p ret;"
        "cvt.rn.f64.u32 %f, %i; mov.b64 %g, 0x7FE0000000000001; mul.rz.f64 %f, %f, %g;"
        "cvt.rzi.u32.f64 %v, %f; st.global.u32 [%at], %v; ret; }"
    )
    x = np.arange(1 << 14, dtype="u4")
    by_numpy, by_compiled = both(body, x, monkeypatch, grid=(256,), block=(64,))
    assert by_numpy == by_compiled
    assert by_compiled[1] is None
    assert by_compiled[0][:4] == [0, 2, 4, 6]


@pytest.mark.usefixtures("compiled")
def test_a_read_only_array_is_not_written() -> None:
    x = np.arange(64, dtype="u4")
    device = Device()
    module = device.load(image_of(HEAD + DOUBLE))
    arguments = pack(module.image, "k", (x, np.uint32(0)))
    array = NamedArray(x.ctypes.data, x.nbytes, "argument 0")
    with pytest.raises(Fault, match="a read-only array of 256 bytes"):
        device.launch(module, "k", arguments, (1,), (64,), read_only=[array])
    np.testing.assert_array_equal(x, np.arange(64))


@pytest.mark.usefixtures("compiled")
def test_threads_that_wait_for_others_take_turns() -> None:
    # Thread 0 waits for the last one, which runs behind it.
    body = (
        "setp.eq.u32 %p, %i, 63; @%p st.volatile.global.u32 [%at], 1; sub.u64 %d, %at, 0;"
        "ld.param.u64 %d, [x]; add.u64 %d, %d, 252;"
        "again: ld.volatile.global.u32 %v, [%d]; setp.eq.u32 %q, %v, 0; @%q bra again;"
        "setp.eq.u32 %p, %i, 63; @!%p st.global.u32 [%at], %i; ret; }"
    )
    x = np.zeros(64, "u4")
    state = run(body, x, block=(64,))
    assert state.ran == 1
    assert x.tolist() == [*range(63), 1]


def new_text(body: str = DOUBLE) -> str:
    """Return the text of a kernel that no cache has."""
    return f"{HEAD}{body}\n// {uuid.uuid4()}\n"


@pytest.mark.parametrize("engine", ["auto", None])
def test_auto_compiles_what_is_hot(engine: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CULAUNCH_EMULATOR_ENGINE", raising=False)
    if engine is not None:
        monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", engine)
    device, x, text = Device(), np.ones(64, "u4"), new_text()
    module = launch(text, "k", x, np.uint32(0), block=(64,), device=device)
    state = state_of(module)
    assert state.ran == 0
    assert 0 < module.code("k").seconds < 10
    module.code("k").seconds = 10.0
    launch(text, "k", x, np.uint32(0), block=(64,), device=device, module=module)
    assert state.ran == 1
    assert (x == 4).all()


@pytest.mark.parametrize("is_unusual", [False, True])
def test_a_kernel_is_compiled_during_its_only_launch(
    monkeypatch: pytest.MonkeyPatch, is_unusual: bool
) -> None:
    """The compiled engine runs the blocks that are left. Each word is doubled in place, once."""
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "auto")
    monkeypatch.setattr("culaunch._emulator.launch._HOT", 1e-9)
    monkeypatch.setattr("culaunch._emulator.launch._HOT_PER_INSTRUCTION", 0.0)
    # The last thread reads what nobody has written, which only the NumPy engine handles.
    end = "sub.u32 %n, %n, 1; setp.eq.u32 %p, %i, %n; @!%p ret; ld.shared.u32 %v, [box]; "
    end += "and.b32 %v, %v, 0; st.global.u32 [%at], %v; "
    body = DOUBLE.replace("ret; }", f"{end if is_unusual else ''} ret; }}")
    x = np.arange(1 << 14, dtype="u4")
    device = Device(options=Options(lanes=1024))
    module = launch(
        new_text(body), "k", x, np.uint32(x.size), grid=(256,), block=(64,), device=device
    )
    expected = 2 * np.arange(1 << 14)
    expected[-1] *= not is_unusual
    np.testing.assert_array_equal(x, expected)
    state = state_of(module)
    assert state.ran == (not is_unusual)
    assert ("undefined value" in state.why_not) == is_unusual
    # The first chunk has one block instead of 16, and each other block is a group.
    assert state.groups == 255 or is_unusual


@pytest.mark.parametrize(
    ("body", "chunks"),
    [
        (DOUBLE, [1, 16, 16, 15]),
        ("red.shared.add.f32 [box], 0f3F800000; ret; }", [1, 16, 16, 15]),
        ("ld.volatile.shared.u32 %v, [box]; ret; }", [1, 16, 16, 15]),
        ("red.global.add.f32 [%at], 0f3F800000; ret; }", [16, 16, 16]),
    ],
)
def test_the_first_chunk_is_small_if_that_changes_no_result(
    monkeypatch: pytest.MonkeyPatch, body: str, chunks: list[int]
) -> None:
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "auto")
    seen: list[int] = []
    monkeypatch.setattr(
        "culaunch._emulator.launch.Launch._run_chunk", lambda *args: seen.append(args[2])
    )
    x, device = np.zeros(48 * 64, "u4"), Device(options=Options(lanes=1024))
    module = launch(new_text(body), "k", x, np.uint32(0), grid=(48,), block=(64,), device=device)
    assert seen == chunks
    # A kernel that has run is known.
    del seen[:]
    launch("", "k", x, np.uint32(0), grid=(48,), block=(64,), device=device, module=module)
    assert seen == [16, 16, 16]


def test_auto_takes_what_another_process_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "auto")
    body = (
        "mov.u64 %d, number; ld.global.u32 %w, [%d]; add.u32 %w, %w, 1; "
        "st.global.u32 [%at], %w; ret; }"
    )
    text = new_text(body).replace(".visible .entry", ".global .u32 number = 6;\n.visible .entry", 1)
    x = np.ones(64, "u4")

    def ran(text: str) -> int:
        module = launch(text, "k", x, np.uint32(0), block=(64,), device=Device())
        assert (x == 7).all()
        return state_of(module).ran

    assert ran(text) == 0
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "compiled")
    assert ran(text) == 1
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "auto")
    # A module that is loaded again has its variables elsewhere.
    assert ran(text) == 1
    assert ran(text + "//") == 0


@pytest.mark.usefixtures("cold")
def test_a_long_kernel_has_to_be_hotter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its compilation takes longer."""
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "auto")
    text = HEAD + "xor.b32 %w, %v, 1; " * 500 + DOUBLE
    device, x = Device(), np.ones(64, "u4")
    module, ran = None, []
    for seconds in (0.0, 0.5, 2.7):
        if module is not None:
            module.code("k").seconds = seconds
        module = launch(text, "k", x, np.uint32(0), block=(64,), device=device, module=module)
        ran.append(state_of(module).ran)
    assert ran == [0, 0, 1]


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        # The old value is not read, so integers give one sum in any order.
        ("atom.global.add.u32 %w, [%d], 3;", ""),
        ("red.global.max.s32 [%d], %v;", ""),
        ("atom.global.add.u32 %w, [%d], 3; st.global.u32 [%at], %w;", "atom.global.add.u32"),
        ("red.global.add.f32 [%d], 0f3F800000;", "red.global.add.f32"),
        ("atom.global.exch.b32 %w, [%d], %v;", "atom.global.exch.b32"),
        ("atom.global.cas.b32 %w, [%d], 0, %v;", "atom.global.cas.b32"),
        ("red.global.inc.u32 [%d], %v;", "red.global.inc.u32"),
        ("ld.volatile.global.u32 %w, [%d];", "ld.volatile.global.u32"),
    ],
)
def test_auto_leaves_what_depends_on_the_order_of_threads(
    monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    """Or a result would change at the moment when its kernel is compiled."""
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "auto")
    text = f"{HEAD}ld.param.u64 %d, [x]; {body} ret; }}"
    ends = []
    device, module = Device(), None
    for seconds in (0.0, 10.0):
        x = np.arange(64, dtype="u4")
        if module is not None:
            module.code("k").seconds = seconds
        module = launch(text, "k", x, np.uint32(0), block=(64,), device=device, module=module)
        ends.append(x.tolist())
    assert ends[0] == ends[1]
    state = state_of(module)
    assert (state.ordered, state.why_not) == (why, "")
    assert state.ran == (0 if why else 1)
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "compiled")
    assert run(f"ld.param.u64 %d, [x]; {body} ret; }}", x, block=(64,)).ran == 1


def test_auto_gives_up_what_is_unusual_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "auto")
    device, x = Device(), np.ones(64, "u4")
    body = "ld.shared.u32 %v, [box]; and.b32 %v, %v, 0; st.global.u32 [%at], %v; ret; }"
    module = launch(HEAD + body, "k", x, np.uint32(0), block=(64,), device=device)
    state = state_of(module)
    module.code("k").seconds = 10.0
    launch(HEAD + body, "k", x, np.uint32(0), block=(64,), device=device, module=module)
    assert state.ran == 0
    assert "undefined value" in state.why_not
    assert (x == 0).all()


def test_without_a_compiler_numpy_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "compiled")
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CC", raising=False)
    x = np.ones(64, "u4")
    state = run(DOUBLE, x, block=(64,))
    assert state.ran == 0
    assert "no C compiler" in state.why_not
    assert (x == 2).all()


def test_an_instruction_that_c_cannot_say_is_named(compiled: None) -> None:
    x = np.ones(64, "u4")
    state = run("fns.b32 %v, %i, 0, 1; st.global.u32 [%at], %v; ret; }", x, block=(64,))
    assert state.ran == 0
    assert state.why_not.startswith("fns.b32")


@pytest.mark.parametrize("option", ["check_races", "observer"])
def test_what_only_the_numpy_engine_checks_runs_there(option: str, compiled: None) -> None:
    x = np.ones(64, "u4")
    value = {"check_races": True, "observer": InstructionCount()}[option]
    state = run(DOUBLE, x, block=(64,), **{option: value})
    assert state.ran == 0
    assert (x == 2).all()


def test_another_engine_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "fast")
    with pytest.raises(ValueError, match=r"must be one of numpy, compiled, auto \(got 'fast'\)"):
        run(DOUBLE, np.ones(64, "u4"))


def test_a_library_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "compiled")
    body = f"add.u32 %v, %v, {np.random.default_rng().integers(1 << 30)};" + DOUBLE
    x = np.ones(64, "u4")
    assert run(body, x, block=(64,)).ran == 1

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("it is compiled again")

    monkeypatch.setattr("culaunch._emulator.compiled.build.subprocess.run", refuse)
    # Another device, and so another module, with the same text.
    assert run(body, x, block=(64,)).ran == 1
