"""Libraries that are built and not loaded, from texts and from files; and their stubs."""

from __future__ import annotations

import ast

import pytest

import culaunch as cl
from culaunch._inline.texts import including, parameter_names

pytest.importorskip("tvm_ffi")

ADD = """
#include "amount.h"
int64_t add(int64_t x) { return x + AMOUNT; }
CULAUNCH_EXPORT(add, add, "x", "Add the amount.\\nIt is in a header.");
"""
MORE = """
static tvm::ffi::Tensor first(tvm::ffi::Tensor class_, double factor,
                                  tvm::ffi::Optional<int64_t> n) {
  CULAUNCH_CHECK_NOT_EMPTY(class_);
  return factor > static_cast<double>(n.value_or(0)) ? class_ : class_;
}
CULAUNCH_EXPORT(first, first, "class, factor, n");
static void nothing() {}
CULAUNCH_EXPORT(nothing, nothing);
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build two files; one of them includes a header beside it."""
    folder = tmp_path_factory.mktemp("a project")
    (folder / "amount.h").write_text("#define AMOUNT 2\n")
    (folder / "add.cpp").write_text(ADD)
    (folder / "more.cpp").write_text(MORE)
    output = folder / "kernels.so"
    arguments = {"flags": ["-O0"], "build_directory": folder / "kept"}
    sources = [folder / "add.cpp", str(folder / "more.cpp")]
    return cl.cpp.build("kernels", sources, output=output, **arguments), arguments


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_files_become_a_library_that_is_loaded_later(built, run_after_torch):
    library, arguments = built
    assert library == library.parent / "kernels.so"
    script = "import sys, tvm_ffi; assert tvm_ffi.load_module(sys.argv[1]).add(40) == 42"
    done = run_after_torch(["-c", script, library])  # TVM-FFI imports torch
    assert done.returncode == 0, done.stderr
    # A changed header causes a build; without changes there is none.
    folder = library.parent
    kept = cl.cpp.build("kernels", [folder / "add.cpp", folder / "more.cpp"], **arguments)
    assert kept.parent.parent == folder / "kept"
    assert kept == cl.cpp.build("kernels", [folder / "add.cpp", folder / "more.cpp"], **arguments)
    (folder / "amount.h").write_text("#define AMOUNT broken\n")
    with pytest.raises(cl.CompileError, match=r"add\.cpp:3:"):
        cl.cpp.build("kernels", [folder / "add.cpp", folder / "more.cpp"], **arguments)
    (folder / "amount.h").write_text("#define AMOUNT 2\n")


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_the_path_of_a_library_can_be_loaded(built, run_after_torch, tmp_path, monkeypatch):
    """A name without a folder would be looked up where the system's libraries are."""
    library, arguments = built
    monkeypatch.chdir(tmp_path)
    sources = [library.parent / "add.cpp", library.parent / "more.cpp"]
    for output in ("k.so", "./k.so"):
        made = cl.cpp.build("kernels", sources, output=output, **arguments)
        assert made == tmp_path / "k.so"
        script = "import sys, tvm_ffi; assert tvm_ffi.load_module(sys.argv[1]).add(40) == 42"
        done = run_after_torch(["-c", script, made])
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_a_stub_says_names_types_and_docstrings(built, run_after_torch, tmp_path):
    library, _ = built
    text = cl.cpp.stubs(library, tmp_path / "kernels.pyi")
    assert (tmp_path / "kernels.pyi").read_text() == text
    ast.parse(text)
    assert (
        '''
def add(x: int, /) -> int:
    """Add the amount.
    It is in a header.
    """

def first(class_: Array, factor: float, n: int | None, /) -> Any: ...

def nothing() -> None: ...
'''
        in text
    )
    done = run_after_torch(["-m", "culaunch", "stubs", library])
    assert done.stdout == text


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_texts_are_built_with_the_names_of_their_parameters(libraries):
    library = cl.cpp.build_inline(
        "twice",
        "int64_t twice(const int64_t x) { return 2 * x; }",
        functions={"twice": "Double it."},
        flags=["-O0"],
        build_directory=libraries,
    )
    assert library.suffix == ".so"
    assert 'def twice(x: int, /) -> int:\n    """Double it."""' in cl.cpp.stubs(library)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("void f(TensorView y, const Tensor &x, float* p, int n) {", "y, x, p, n"),
        ("int64_t f() {", ""),
        ("auto f(unsigned long long n, int) -> int {", ""),
        ("void f(int n, unsigned int) {", ""),
        ("void f(int a[3], double b)\n  noexcept\n{", "a, b"),
        ("void f(std::map<int, int> m) {", ""),
        ("void f(int n); void f(int other) {", "other"),
        ("void g(int n) {", ""),
    ],
)
def test_names_of_parameters_are_read_where_that_is_plain(code, names):
    assert parameter_names(code, "f") == names


def test_sources_are_files_that_are_there(tmp_path):
    (tmp_path / "a.cpp").write_text("")
    (tmp_path / "b.cu").write_text("")
    cpp, cuda = including([tmp_path / "a.cpp", tmp_path / "b.cu"])
    assert cpp == f'#include "{tmp_path}/a.cpp"\n'
    assert cuda == f'#include "{tmp_path}/b.cu"\n'
    with pytest.raises(FileNotFoundError, match=r"the source .*c\.cpp does not exist"):
        including(tmp_path / "c.cpp")
    with pytest.raises(ValueError, match="sources must name at least one file"):
        including([])


@pytest.mark.slow
def test_a_stub_of_what_is_no_library_is_refused(tmp_path):
    (tmp_path / "text.so").write_text("text")
    with pytest.raises(cl.ImageError, match=r"text\.so cannot be loaded as a library: "):
        cl.cpp.stubs(tmp_path / "text.so")
