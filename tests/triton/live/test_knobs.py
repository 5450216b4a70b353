"""What Triton's knobs and environment say is obeyed as by Triton's own launch."""

import inspect

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="needs no-GPU: with one Triton has a driver of its own"
)


@pytest.fixture(autouse=True)
def emulator(monkeypatch, tmp_path, on_emulator):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def add():
    import installed_kernels

    return triton.jit(installed_kernels.add.fn)


def launch(kernel, **more):
    x, out = torch.ones(64), torch.zeros(64)
    more = {"BLOCK": 64, **more}
    if more["BLOCK"] is None:
        del more["BLOCK"]
    return kernel[(1,)](x, x, out, 64, **more), out


def test_debug(launched, add, monkeypatch):
    from triton import knobs

    kernel = launched(add)
    plain = launch(kernel)[0]
    assert launch(kernel)[0] is plain
    monkeypatch.setattr(knobs.runtime, "debug", True)
    debugged = launch(kernel)[0]
    assert (debugged.metadata.debug, plain.metadata.debug) == (True, False)
    assert launch(kernel)[0] is debugged
    monkeypatch.setattr(knobs.runtime, "debug", False)
    assert launch(kernel)[0].metadata.debug is False


def test_a_hook_into_the_stages_of_the_compiler(launched, add, monkeypatch):
    from triton import knobs

    if not hasattr(knobs.runtime, "add_stages_inspection_hook"):
        pytest.skip("needs triton.knobs.runtime.add_stages_inspection_hook")
    asked, key = [], ["one"]

    def hook(backend=None, stages=None, options=None, language=None, capability=None):
        asked.append("key" if stages is None else "stages")
        return key[0], key[0]

    kernel = launched(add)
    first = launch(kernel)[0]
    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", hook)
    second = launch(kernel)[0]
    run = triton.runtime.JITFunction.run
    if "add_stages_inspection_hook" not in inspect.getsource(inspect.unwrap(run)):
        assert second is first  # this Triton asks only when it compiles
        return
    assert second is not first
    assert "stages" in asked
    asked.clear()
    assert launch(kernel)[0] is second
    assert asked == ["key"]
    key[0] = "two"
    assert launch(kernel)[0] is not second
    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", None)
    assert launch(kernel)[0] is first


def test_an_overridden_stage(launched, add, monkeypatch, tmp_path):
    """What is dumped, edited and put into the folder of overrides is what runs."""
    folders = {name: tmp_path / name for name in ("dump", "override")}
    monkeypatch.setenv("TRITON_DUMP_DIR", str(folders["dump"]))
    monkeypatch.setenv("TRITON_OVERRIDE_DIR", str(folders["override"]))
    with monkeypatch.context() as dumping:
        dumping.setenv("TRITON_KERNEL_DUMP", "1")
        dumping.setenv("TRITON_ALWAYS_COMPILE", "1")
        assert launch(launched(add))[1][0] == 2
    (dumped,) = folders["dump"].rglob("*.ptx")
    text = dumped.read_text()
    assert "add.f32" in text
    override = folders["override"] / dumped.parent.name / dumped.name
    override.parent.mkdir(parents=True)
    override.write_text(text.replace("add.f32", "sub.f32"))
    monkeypatch.setenv("TRITON_KERNEL_OVERRIDE", "1")
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    again = launched(triton.jit(add.fn))
    assert launch(again)[1][0] == 0


def test_autotuning_is_printed(launched, add, monkeypatch, capsys):
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    configs = [triton.Config({"BLOCK": block}) for block in (64, 128)]
    kernel = launched(triton.autotune(configs, key=["n"])(add))
    for _ in range(3):
        launch(kernel, BLOCK=None)
    printed = capsys.readouterr().out
    assert printed.count("Triton autotuning for function add") == 1
    assert "best config selected" in printed


def test_hooks_of_the_compiler(launched, add, monkeypatch):
    from triton import knobs

    seen = []
    for name in ("jit_cache_hook", "jit_post_compile_hook"):
        monkeypatch.setattr(
            knobs.runtime, name, lambda name=name, **more: seen.append((name, more["repr"][:4]))
        )
    kernel = launched(add)
    launch(kernel)
    launch(kernel)
    assert seen == [("jit_cache_hook", "add["), ("jit_post_compile_hook", "add[")]
