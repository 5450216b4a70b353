"""Functions: a body that is traced once for each kind of arguments, and runs natively."""

from __future__ import annotations

import functools
import os
import types
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from culaunch._base.bundling import keep_to_bundle
from culaunch._base.checks import checked_flag
from culaunch._base.fork_lock import ForkLock
from culaunch._base.untraced import untraced
from culaunch._base.values import spell
from culaunch._core import Function as CoreFunction
from culaunch._core import Program
from culaunch._function.calling.abstract import run_abstract
from culaunch._function.calling.doors import framework_door, jax_door
from culaunch._function.calling.explain import explained, signature_text
from culaunch._function.calling.live import run_live
from culaunch._function.calling.specialize import explore, explore_elsewhere, kinds_of
from culaunch._function.declarations.backward import Backward
from culaunch._function.declarations.declaration import Declaration
from culaunch._function.export import Exported, library_source
from culaunch._function.programs.encode import encode
from culaunch._function.programs.failures import raise_failure
from culaunch._function.programs.program import Tree, UnstableBodyError
from culaunch._function.programs.record import Notes
from culaunch._function.tracing.kinds import Kind, arrays_of, key_of
from culaunch._function.tracing.runs import trace
from culaunch._function.tracing.scope import value_of_read
from culaunch._launch.launches.compiled_regions import in_regions

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Iterator, Sequence

    from typing_extensions import Self

    from culaunch._core import FunctionMethods
    from culaunch._farm.progress import Progress
    from culaunch._function.calling.doors import Door
    from culaunch._function.tracing.runs import Run
    from culaunch._function.tracing.scope import Read

P = ParamSpec("P")
R = TypeVar("R")


class Function(CoreFunction, Generic[P, R]):
    """The host side of one or more kernels, made by :func:`function` from a Python function.

    Attributes
    ----------
    declaration : Declaration
        Its parameters.

    Examples
    --------
    >>> scale(x, 2.0).numpy()[:3]
    array([2., 2., 2.], dtype=float32)
    >>> print(scale.explain(x, 2.0))
    scale(x: float32[_], factor: float), 1 path
    ...
    """

    __wrapped__: Callable[P, R]
    __name__: str
    declaration: Declaration
    _declared: tuple[str, ...] | None
    _trees: dict[Any, tuple[Kind, Tree]]
    _reads: dict[tuple[int, str | None], Read]
    _notes: Notes
    _catches_unseen: bool
    _lock: ForkLock
    _gradient: Backward | None
    _doors: list[Door]

    # Whether it has a body. A library's function has only programs.
    _has_body = True
    # Whether all paths return the same types and write the same arguments, as in a fused function.
    _paths_are_alike = False

    def __new__(cls, body: Callable[P, R], *, mutates: Sequence[str] | None = None) -> Self:
        """Make one; :func:`function` is the way to do so."""
        if not isinstance(body, types.FunctionType):
            raise TypeError(
                f"a function's body must be a Python function (got {spell(body)}): decorate the "
                "function itself"
            )
        declaration = Declaration(body)
        self = cls._of(declaration)
        self._declared = None if mutates is None else declaration.checked_mutates(mutates)
        self._trees = {}
        self._reads = {}
        self._notes = Notes()
        self._catches_unseen = False
        self._lock = ForkLock()
        self._gradient = None
        functools.update_wrapper(self, body)
        keep_to_bundle(self)
        return self

    @classmethod
    def _of(cls, declaration: Declaration) -> Self:
        """Make one with these parameters."""
        defaults = tuple(
            declaration.defaults.get(name, CoreFunction.missing) for name in declaration.names
        )
        # The extension's type binds arguments and runs programs. A call of a known kind does not
        # run this code.
        self = super().__new__(cls, declaration.name, declaration.parameters, defaults)
        self.declaration = declaration
        self._doors = []
        return self

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **keywords: P.kwargs) -> R: ...

    # ---- how it describes itself

    @property
    def mutates(self) -> tuple[str, ...]:
        """The parameters whose arrays it writes: as declared, or as far as it was traced."""
        if self._declared is not None:
            return self._declared
        return self._used("write")

    @property
    def may_mutate(self) -> tuple[str, ...]:
        """The parameters that may be written: the kernels' signatures do not decide."""
        if self._declared is not None:
            return ()
        return tuple(name for name in self._used("unknown") if name not in self.mutates)

    def explain(self, *args: Any, **keywords: Any) -> str:
        """Return the recorded program for these arguments, as readable text.

        The call is traced if necessary; nothing is launched.

        Parameters
        ----------
        *args, **keywords
            The arguments of a call. Without arguments: every recorded program.

        Returns
        -------
        str
            The text.

        Raises
        ------
        TypeError, ValueError
            As a call with these arguments, up to its launches.
        """
        if not args and not keywords and self.declaration.names:
            return "\n\n".join(
                explained(self.declaration, kind, tree) for kind, tree in self._trees.values()
            )
        values = self._bind(args, keywords)
        kind = self._kind(values)
        return explained(self.declaration, kind, self._learn(values, kind))

    def specialize(
        self,
        *,
        both_sides: bool = True,
        executor: concurrent.futures.Executor | None = None,
        progress: bool | Callable[[Progress], object] = False,
        **parameters: Any,
    ) -> tuple[Kind, ...]:
        """Trace a kind of arguments without a call, for saving and exporting.

        Parameters
        ----------
        both_sides : bool, optional
            Whether to follow every guard to both sides. Otherwise only the side of large,
            contiguous and aligned arrays is traced.
        executor : concurrent.futures.Executor, optional
            An executor whose workers trace each kind first, as for
            :func:`culaunch.compiling.compile_many`. This fills the caches that they share with this
            process, for example for Triton kernels in the body. The workers import the function by
            its name.
        progress : bool or callable, optional
            With an executor: True draws a progress bar, and a callable receives a
            :class:`culaunch.compiling.Progress`.
        **parameters
            The type of each parameter: ``cl.Array("float32 | float16", "b n")``, the types ``int``
            and ``float``, None, a list or tuple of these, or a value. The annotation or the default
            supplies a parameter that you omit.

        Returns
        -------
        tuple
            The traced kinds, one for each element type.

        Raises
        ------
        TypeError, ValueError
            If a parameter is missing, or the body needs the value of a number. Also if the function
            comes from a library, which has no body.
        """
        if not self._has_body:
            raise TypeError(
                f"{self.__name__} comes from a library and has no body to trace: call specialize() "
                "of the function before you save it"
            )
        checked_flag("both_sides", both_sides)
        found = kinds_of(self.declaration, parameters)
        explore_elsewhere(self, found, both_sides, executor, progress)
        for kind in found:
            for run in explore(self.declaration, kind, self._notes, both_sides=both_sides):
                with self._lock:
                    self._keep(kind, self._tree(kind), run)
        return found

    def source(self, language: str = "c++") -> str:
        """Return the recorded programs as text of another language; export compiles this text.

        Parameters
        ----------
        language : {"c++"}, optional

        Returns
        -------
        str

        Raises
        ------
        TypeError
            If a program does something that only Python can do: it calls a fused function, closes
            over an array, or returns an argument.
        ValueError
            If nothing was traced yet, or the language is not supported.
        """
        if language != "c++":
            raise ValueError(f'language must be "c++" (got {spell(language)})')
        return library_source([self._exported()], self.__name__).text

    def abstract(self, *args: Any, **keywords: Any) -> Any:
        """Run the body on shapes: ``AbstractArray`` stands for arrays, and nothing is launched.

        Parameters
        ----------
        *args, **keywords
            The arguments of a call, with ``AbstractArray`` for arrays.

        Returns
        -------
        object
            The results of the call, with ``AbstractArray`` for arrays.
        """
        return run_abstract(self.declaration, self._bind(args, keywords))

    def backward(
        self, function: Callable[..., Any], *, forward: Function[..., Any] | None = None
    ) -> Callable[..., Any]:
        """Set the function that computes the gradients.

        Its parameter names select what it receives: ``grad`` (or ``grad_0``, ... for several
        outputs), ``out`` (``out_0``, ...), ``saved`` (``saved_0``, ...), and the names of this
        function's parameters. It returns the gradients of the array parameters, in order, with None
        for a parameter without a gradient.

        Parameters
        ----------
        function : Function or callable
        forward : Function, optional
            Called instead of this function when a gradient will be asked for. It takes the same
            arguments. It returns the same results, and then the values that ``function`` takes as
            ``saved``, ``saved_0``, ....

        Returns
        -------
        callable
            The same object, so you can use this method as a decorator.

        Raises
        ------
        TypeError, ValueError
            If it is not a function, or has a parameter with another name. If ``forward`` is not a
            function with the same parameters, or is missing although ``function`` takes ``saved``.
        """
        self._gradient = Backward(self.declaration, function, forward)
        for door in self._doors:
            door.differentiate()
        return function

    @functools.cached_property
    def jax(self) -> Any:
        """The function as an operation of JAX, for ``jax.jit``, ``grad`` and ``vmap``.

        It is what ``culaunch.frameworks.jax_op(function)`` makes.

        Raises
        ------
        MissingDependencyError
            If JAX is not installed, or too old.
        """
        return jax_door(self)

    def traced(self) -> list[tuple[Kind, Tree]]:
        """Return each kind that was traced, and its tree, as far as globals are as they were.

        Returns
        -------
        list of tuple
            Pairs of a kind and its tree.
        """
        self._require_same_reads()
        with self._lock:
            return [(kind, tree) for kind, tree in self._trees.values() if tree.paths]

    def _paths(self) -> Iterator[tuple[dict[int, set[str]], tuple[Any, ...] | None, int]]:
        """List the known paths, for the operators of frameworks.

        Yields
        ------
        tuple
            The uses of the arguments, by parameter: ``read``, ``write`` or ``unknown``. The effects
            at the end of the path, or None if only uses are known. The number of arguments that are
            arrays. Paths that end in an error are left out.
        """
        for kind, tree in list(self._trees.values()):
            yield tree.uses, None, 0
            for node in tree.nodes():
                if node.leaf is not None and not node.leaf.is_error:
                    yield {}, node.leaf.effects, arrays_of(kind)

    # ---- called by the extension

    @untraced
    def _trace(self, arguments: tuple[Any, ...]) -> None:
        self._learn(arguments, self._kind(arguments))

    def _fail(self, number: int, detail: int, text: str | None, values: tuple[Any, ...]) -> None:
        raise_failure(self.__name__, number, detail, text, values)

    @untraced
    def _refused(self, arguments: tuple[Any, ...], error: TypeError | None) -> Any:
        return framework_door(self, arguments, error)

    @untraced
    def _run_live(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        values = self._bind(args, keywords)
        return run_live(self.declaration, self._kind(values), values)

    def _learn(self, values: tuple[Any, ...], kind: Kind) -> Tree:
        """Trace a call and add its path."""
        while True:
            self._require_same_reads()
            tree = self._tree(kind)
            version = tree.version
            # Run without the lock. A body may call anything, including functions of other threads,
            # and may compile for minutes.
            run = trace(self.declaration, kind, values, self._notes, tree=tree)
            # Another thread may have added a path meanwhile that this run would have followed.
            with self._lock:
                if tree.version == version and self._tree(kind) is tree:
                    self._keep(kind, tree, run)
                    return tree

    def _exported(self) -> Exported:
        """Return the recorded programs, for ``export``.

        Programs traced with other globals are dropped, as in a call.
        """
        self._require_same_reads()
        with self._lock:
            programs = tuple(self._trees.values())
        body = self.declaration.body
        code = body.__code__
        origin = f"of {os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        return Exported(self.declaration, programs, body, origin, body.__doc__)

    def _tree(self, kind: Kind) -> Tree:
        with self._lock:
            return self._trees.setdefault(
                key_of(kind),
                (kind, Tree(self.__name__, arrays_of(kind), self._notes.version)),
            )[1]

    def _keep(self, kind: Kind, tree: Tree, run: Run) -> None:
        for door in self._doors:
            # This comes first: if an operator rejects the path, no part of it is kept.
            door.learn(run, kind)
        if self._notes.catches_unseen and not self._catches_unseen:
            # Until now, operations that may raise were not branches.
            self._catches_unseen = True
            self._forget()
            tree = self._tree(kind)
        try:
            tree.add(run.record)
        except UnstableBodyError:
            # Facts learned since the first path may cause the difference. The old paths are
            # recorded again when calls need them.
            if tree.learned == self._notes.version:
                raise
            del self._trees[key_of(kind)]
            tree = self._tree(kind)
            tree.add(run.record)
        tree.array_names = run.array_names
        for parameter, accesses in run.uses.items():
            tree.uses.setdefault(parameter, set()).update(accesses)
        # Encode the whole program again. It has few paths, and a running program keeps the version
        # that it started with.
        encoded = encode(tree)
        self._reads |= {(id(one[0]), one[1]): one for one in run.reads}
        program = Program(encoded.words, encoded.constants, encoded.texts)
        self._add(kind, program, tuple(self._reads.values()))

    def _require_same_reads(self) -> None:
        """Drop the programs that were traced with other globals."""
        with self._lock:
            for container, name, value in self._reads.values():
                # Compare by identity: a global replaced by an equal one may behave differently.
                now = value_of_read(container, name)
                if now is not value:
                    self._forget()
                    return

    def _forget(self) -> None:
        """Drop everything that was traced."""
        self._trees.clear()
        self._reads.clear()
        self._clear()

    def _used(self, access: str) -> tuple[str, ...]:
        found = {
            parameter
            for _, tree in self._trees.values()
            for parameter, accesses in tree.uses.items()
            if access in accesses
        }
        return tuple(name for i, name in enumerate(self.declaration.names) if i in found)

    # ---- as Python's functions

    def __reduce__(self) -> Any:
        # Pickle it by name, like functions.
        return self.__wrapped__.__qualname__

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __str__(self) -> str:
        return signature_text(self.declaration, self.mutates, self.may_mutate, self._declared)

    def __repr__(self) -> str:
        first = str(self).partition("\n")[0]
        return f"<culaunch.Function {first}>"


in_regions(Function, "operator", "function")

if TYPE_CHECKING:  # the extension calls methods of it
    _methods: type[FunctionMethods] = Function
