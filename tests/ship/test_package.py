"""Wheels of libraries: installed by pip, used, and typed."""

import base64
import csv
import hashlib
import importlib.metadata
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from runs import run_command

import culaunch as cl

pytestmark = pytest.mark.usefixtures("emulated")

x5 = np.arange(5, dtype=np.float32)


@pytest.fixture
def library(scale, kernels, tmp_path):
    @cl.function
    def shapes(x: cl.Array("float32", "n"), y=None, /, *, label: str = 'a"\\'):
        """Say "how much" \\ there is."""
        return x.shape[0], x.shape[0] / 2, {"x": x, "y": y}, [x, x[1:]]

    @cl.function
    def fill_(y, value: int):
        kernels["fill"][1, 32](y, value, y.shape[0])

    scale.specialize()
    shapes(x5)
    shapes(x5, x5)
    fill_(np.zeros(3, np.int32), 1)
    path = tmp_path / "my.culib"
    cl.ship.save([scale, shapes, fill_], path)
    return path


@pytest.fixture
def wheel(library, tmp_path):
    return cl.ship.package(library, name="My-kernels", version="1.2rc1", output=tmp_path)


def contents(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_parts_of_a_wheel(wheel, library, tmp_path):
    assert os.path.basename(wheel) == "my_kernels-1.2rc1-py3-none-any.whl"
    found = contents(wheel)
    folder = "my_kernels-1.2rc1.dist-info"
    assert list(found) == [
        "My_kernels/My_kernels.culib",
        "My_kernels/__init__.py",
        "My_kernels/__init__.pyi",
        "My_kernels/jax.py",
        "My_kernels/py.typed",
        "My_kernels/torch.py",
        f"{folder}/METADATA",
        f"{folder}/WHEEL",
        f"{folder}/RECORD",
    ]
    assert found["My_kernels/My_kernels.culib"] == library.read_bytes()
    rows = list(csv.reader(io.StringIO(found[f"{folder}/RECORD"].decode())))
    assert rows.pop() == [f"{folder}/RECORD", "", ""]
    for name, digest, size in rows:
        data = hashlib.sha256(found[name]).digest()
        assert digest == "sha256=" + base64.urlsafe_b64encode(data).rstrip(b"=").decode()
        assert int(size) == len(found[name])
    assert len(rows) == len(found) - 1
    metadata = found[f"{folder}/METADATA"].decode()
    assert "\nName: My-kernels\nVersion: 1.2rc1\n" in metadata
    assert f"\nRequires-Dist: culaunch>={cl.__version__.partition('+')[0]}\n" in metadata
    assert "    scale(x: Array('float32 | float64', 'n'), factor: float" in metadata
    before = Path(wheel).read_bytes()
    assert cl.ship.package(library, name="My-kernels", version="1.2rc1", output=tmp_path) == wheel
    assert Path(wheel).read_bytes() == before
    for name in found:
        if name.endswith((".py", ".pyi")):
            compile(found[name], name, "exec")


STUBS = """\
def scale(x: _Array, factor: float, twice: bool = False) -> _Array:
    \"\"\"y = x * factor.
"""
SHAPES = (
    "def shapes(x: _Array, y: _Array | None = None, /, *, label: str = 'a\"\\\\') -> "
    "tuple[int, float, dict[str, _Array | None], list[_Array]] | "
    "tuple[int, float, dict[str, _Array], list[_Array]]:\n"
    '    """Say \\"how much\\" \\\\ there is."""\n    ...\n'
)


def test_stubs(wheel):
    text = contents(wheel)["My_kernels/__init__.pyi"].decode()
    assert STUBS in text
    assert SHAPES in text
    assert "def fill_(y: _Array, value: int) -> None:\n    ...\n" in text


USE = """
import sys
import numpy as np
import My_kernels
assert not {"torch", "jax", "triton"} & set(sys.modules)
x = np.arange(5, dtype=np.float32)
print(My_kernels.__version__, My_kernels.__all__, My_kernels.scale(x, 2.0).tolist())
print(My_kernels.scale.__doc__.splitlines()[0])
"""
TYPED = """
from typing import Any
import My_kernels
class Tensor:
    def __dlpack__(self, *, stream: int | None = None) -> Any: ...
    def sort(self) -> None: ...
x = Tensor()
My_kernels.scale(x, 2).sort()
reveal_type(My_kernels.fill_(x, 1))
My_kernels.scale(x, "2")
My_kernels.scale(3, 2.0)
n: str = My_kernels.shapes(x)[0]
"""


@pytest.fixture
def installed(wheel, tmp_path):
    target = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "--version"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("pip is not installed")
    command = [
        sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index",
        "--disable-pip-version-check", "--target", target, wheel,
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return target


@pytest.mark.slow
def test_it_is_installed_and_used(installed, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(installed), "CULAUNCH_DRIVER": "emulator"}
    run = [sys.executable, "-W", "error", "-c", USE]
    done = subprocess.run(
        run, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "1.2rc1 ['fill_', 'scale', 'shapes'] [0.0, 2.0, 4.0, 6.0, 8.0]",
        "y = x * factor.",
    ]


TORCH = """
import torch
import My_kernels.torch
assert My_kernels.torch.scale.schema == (
    "My_kernels::scale(Tensor x, float factor, bool twice=False) -> Tensor"
)
assert My_kernels.torch.fill_.schema == "My_kernels::fill_(Tensor(a!) y, SymInt value) -> ()"
x = torch.arange(5.0)
print(torch.ops.My_kernels.scale(x, 2.0).tolist())
print(torch.ops.My_kernels.scale(torch.empty(7, device="meta"), 2.0).shape)
torch.library.opcheck(torch.ops.My_kernels.scale.default, (x, 2.0))
scaled = torch.compile(
    lambda x: torch.ops.My_kernels.scale(x, 2.0) + 1, backend="eager", fullgraph=True, dynamic=True
)
print([scaled(torch.arange(float(n))).tolist() for n in (3, 4)])
"""


@pytest.fixture
def environment(scale, kernels, tmp_path):
    """The modules that a process needs to import and run a package of two functions."""

    @cl.function
    def fill_(y, value: int):
        kernels["fill"][1, 32](y, value, y.shape[0])

    scale.specialize()
    fill_(np.zeros(3, np.int32), 1)
    cl.ship.save([scale, fill_], tmp_path / "k.culib")
    wheel = cl.ship.package(tmp_path / "k.culib", name="My_kernels", version="1.0", output=tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    return {
        **os.environ,
        "PYTHONPATH": str(tmp_path / "site"),
        "CULAUNCH_DRIVER": "emulator",
    }


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_the_operators_of_torch(run_after_torch, environment, tmp_path):
    done = run_after_torch(["-c", TORCH], env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[0.0, 2.0, 4.0, 6.0, 8.0]",
        "torch.Size([7])",
        "[[1.0, 3.0, 5.0], [1.0, 3.0, 5.0, 7.0]]",
    ]


GRADIENTS = """
import torch
import My_kernels.torch
assert My_kernels.torch.__all__ == ["times"] and My_kernels.__all__ == ["gradient", "times"]
factors = torch.arange(1.0, 6.0)
for call in (My_kernels.torch.times, torch.ops.My_kernels.times):
    for backend in (None, "eager", "aot_eager"):
        times = call if backend is None else torch.compile(call, backend=backend)
        x = torch.ones(5, requires_grad=True)
        times(factors, x).sum().backward()
        print(x.grad.tolist(), factors.grad)
torch.library.opcheck(torch.ops.My_kernels.times.default, (factors, x))
"""


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_a_backward_function_that_returns_none(run_after_torch, module, tmp_path):
    @cl.function
    def times(factors: cl.Array("float32", "n"), x: cl.Array("float32", "n")):
        y = cl.empty_like(x)
        module["times"][1, 32](y, x, factors, x.shape[0])
        return y

    @times.backward
    @cl.function
    def gradient(grad: cl.Array("float32", "n"), factors: cl.Array("float32", "n")):
        return None, times(factors, grad)

    for one in (times, gradient):
        one.specialize()
    cl.ship.save([gradient, times], tmp_path / "k.culib")
    wheel = cl.ship.package(tmp_path / "k.culib", name="My_kernels", version="1.0", output=tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]),
        "CULAUNCH_DRIVER": "emulator",
    }
    done = run_after_torch(["-c", GRADIENTS], env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[1.0, 2.0, 3.0, 4.0, 5.0] None"] * 6


JAX = """
import sys
import jax, jax.export
import jax.numpy as jnp
import My_kernels.jax
x = jnp.arange(5.0)
if sys.argv[1] == "write":
    program = jax.jit(lambda x: My_kernels.jax.scale(x + 1, 2.0))
    print(program(x).tolist(), My_kernels.jax.fill_(jnp.zeros(3, jnp.int32), 7).tolist())
    safe = jax.export.DisabledSafetyCheck.custom_call(My_kernels.jax.scale.target)
    data = jax.export.export(program, disabled_checks=[safe])(x).serialize()
    open("program", "wb").write(data)
else:
    print(jax.export.deserialize(open("program", "rb").read()).call(x).tolist())
"""


@pytest.mark.slow
@pytest.mark.needs("jax", "flatbuffers")
def test_the_operations_of_jax(environment, tmp_path):
    environment = {**environment, "JAX_PLATFORMS": "cpu"}
    found = []
    # One process exports, another calls: it finds the functions by the package's names.
    for step in ("write", "read"):
        run = [sys.executable, "-c", JAX, step]
        done = subprocess.run(
            run, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found += done.stdout.splitlines()
    assert found == ["[2.0, 4.0, 6.0, 8.0, 10.0] [7, 7, 7]", "[2.0, 4.0, 6.0, 8.0, 10.0]"]


@pytest.mark.slow
def test_type_checkers_read_the_stubs(installed, tmp_path):
    api = pytest.importorskip("mypy.api")
    script = tmp_path / "use.py"
    script.write_text(TYPED)
    os.environ["MYPYPATH"] = str(installed)
    try:
        out, err, _ = api.run(
            ["--strict", "--cache-dir", str(tmp_path / "cache"), "--no-pretty", str(script)]
        )
    finally:
        del os.environ["MYPYPATH"]
    found = [line.partition("use.py:")[2] for line in out.splitlines() if "use.py:" in line]
    assert [line.split(": ", 2)[:2] for line in found] == [
        ["9", "note"], ["10", "error"], ["11", "error"], ["12", "error"]
    ], out + err  # fmt: skip
    assert 'Revealed type is "None"' in found[0]
    assert '"scale" has incompatible type "str"; expected "float"' in found[1]


@pytest.mark.slow
@pytest.mark.needs("twine")
def test_twine_takes_it(wheel):
    run = [sys.executable, "-m", "twine", "check", "--strict", wheel]
    assert "PASSED" in subprocess.run(run, capture_output=True, text=True, check=True).stdout


def test_the_command(library, tmp_path):
    target = tmp_path / "dist"
    target.mkdir()
    options = ["--name", "k", "--version", "1.0", "--requires", "numpy>=1.26", "-o", str(target)]
    done = run_command("package", str(library), *options)
    assert done.exit_code == 0, done.output
    assert done.output.strip() == str(target / "k-1.0-py3-none-any.whl")
    assert (
        b"Requires-Dist: numpy>=1.26\n" in contents(done.output.strip())["k-1.0.dist-info/METADATA"]
    )


@pytest.mark.slow
@pytest.mark.needs("installed-wheel")
def test_it_installs_without_an_index(library, tmp_path):
    """In a new, empty environment, only from the written directory."""
    target, room = tmp_path / "dist", tmp_path / "room"
    target.mkdir()
    done = run_command("package", str(library), "--name", "my-kernels", "--version", "1.0",
                       "--with-culaunch", "-o", str(target))  # fmt: skip
    assert done.exit_code == 0, done.output
    (own,) = target.glob("culaunch-*.whl")
    assert own.name.startswith(f"culaunch-{cl.__version__.replace('-', '_')}-")
    found = contents(own)
    assert not [name for name in found if "__pycache__" in name or "direct_url" in name]
    assert b"Name: culaunch\n" in found[f"culaunch-{cl.__version__}.dist-info/METADATA"]
    subprocess.run([sys.executable, "-m", "venv", room], check=True)
    subprocess.run(
        [room / "bin" / "pip", "install", "-q", "--no-index", "--disable-pip-version-check",
         "--find-links", target, "my-kernels"],
        check=True,
    )  # fmt: skip
    program = (
        "import culaunch, my_kernels; print(culaunch.__file__, my_kernels.__all__); "
        "print(culaunch.ceildiv(7, 2), my_kernels.scale.__doc__)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [room / "bin" / "python", "-W", "error", "-c", program],
        cwd=tmp_path, env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.startswith(str(room))
    assert "['fill_', 'scale', 'shapes']\n4 y = x * factor.\n" in done.stdout

    # It launches, with NumPy as the only other package.
    others = tmp_path / "others"
    others.mkdir()
    for path in Path(np.__file__).parents[1].glob("numpy*"):
        if path.name in ("numpy", "numpy.libs"):
            (others / path.name).symlink_to(path)
    program = (
        "import my_kernels, numpy as np; x = np.arange(5, dtype='f4'); y = np.zeros(3, 'i4'); "
        "my_kernels.fill_(y, 7); print(my_kernels.scale(x, 2.0).tolist(), y.tolist())"
    )
    environment |= {"PYTHONPATH": str(others), "CULAUNCH_DRIVER": "emulator"}
    done = subprocess.run(
        [room / "bin" / "python", "-W", "error", "-c", program],
        cwd=tmp_path, env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "[0.0, 2.0, 4.0, 6.0, 8.0] [7, 7, 7]\n", done.stderr


def test_an_installation_without_a_wheel_cannot_be_packed(library, tmp_path, monkeypatch):
    def none(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", none)
    with pytest.raises(FileNotFoundError, match="must be installed from a wheel"):
        cl.ship.package(library, name="k", version="1.0", output=tmp_path, with_culaunch=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "a b"}, "name must be the name of a Python package"),
        ({"name": "1a"}, "name must be the name of a Python package"),
        ({"name": "class"}, "name must be the name of a Python package"),
        ({"name": "-a"}, "name must be the name of a Python package"),
        ({"name": "culaunch"}, "name must not be 'culaunch'"),
        ({"version": "1.0-x"}, "version must be in the canonical form"),
        ({"version": "01"}, "version must be in the canonical form"),
        ({"summary": "a\nb"}, "summary must be one line"),
        ({"requires": ["a\nb"]}, "requires must be one line"),
    ],
)
def test_what_is_refused(library, tmp_path, options, words):
    given = {"name": "k", "version": "1.0", "output": tmp_path / "dist", **options}
    with pytest.raises(ValueError, match=words):
        cl.ship.package(library, **given)
    assert not (tmp_path / "dist").exists()


def test_a_function_called_as_a_module(tmp_path):
    @cl.function
    def torch(n: int):
        return n

    torch(1)
    cl.ship.save([torch], tmp_path / "t.culib")
    with pytest.raises(ValueError, match="no function may have the name torch"):
        cl.ship.package(tmp_path / "t.culib", name="k", version="1.0", output=tmp_path)
