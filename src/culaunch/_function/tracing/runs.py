"""One run of a body that is traced: from the kind of a call to its path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.places import Place, is_ours
from culaunch._core import count_bodies
from culaunch._errors import KernelNotFoundError
from culaunch._function.body.bodies import Body, running
from culaunch._function.body.body_errors import is_of_body, locate, with_numbers
from culaunch._function.body.plain_kernels import require_no_plain_kernel
from culaunch._function.declarations.annotation_checks import check
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.catchers import boundary
from culaunch._function.programs.effects import Return
from culaunch._function.programs.record import Notes, Record
from culaunch._function.programs.texts import has_token
from culaunch._function.tracing.kinds import Arguments, Kind, arrays_of, first_array
from culaunch._function.tracing.launches import trace_launch
from culaunch._function.tracing.results import require_held, returned
from culaunch._function.tracing.scope import Read, Scope
from culaunch._function.tracing.trace import TraceBody
from culaunch._function.tracing.verbs import allocate_as
from culaunch._launch.arrays.array import array_info
from culaunch._launch.devices.driver import current_driver

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._function.declarations.declaration import Declaration
    from culaunch._function.programs.program import Tree
    from culaunch._function.programs.record import Register
    from culaunch._function.symbolic.configuration import Configuration


class Run(NamedTuple):
    """The result of a run: its path, the uses of arguments, the values it read, and its end."""

    record: Record
    uses: dict[int, set[str]]
    reads: tuple[Read, ...]
    array_names: dict[int, str]
    is_error: bool


def trace(
    declaration: Declaration,
    kind: Kind,
    values: tuple[Any, ...] | None,
    notes: Notes,
    decide: Callable[[Register, bool], bool] | None = None,
    tree: Tree | None = None,
) -> Run:
    """Run a body once on stand-ins.

    Parameters
    ----------
    declaration : Declaration
    kind : Kind
    values : tuple or None
        The arguments of the call; None if a kind is traced without a call.
    notes : Notes
        Facts about the body from earlier runs.
    decide : callable, optional
        Decides the way of a path without a call.
    tree : Tree, optional
        The known paths. The run makes their decisions in the same order.

    Raises
    ------
    TypeError, ValueError, and what the body raises
        If the body does something that no program can do, or a check of the body fails.
    """
    # A check's message may turn out to contain a formatted number. Or the body may catch an
    # exception that nothing in its code could catch. Record that, and run the body again.
    while True:
        run = _run(declaration, kind, values, notes, decide, tree)
        if not run.record.must_repeat:
            return run


@boundary
def _run(
    declaration: Declaration,
    kind: Kind,
    values: tuple[Any, ...] | None,
    notes: Notes,
    decide: Callable[[Register, bool], bool] | None,
    tree: Tree | None,
) -> Run:
    known = tree.root if tree is not None and tree.paths else None
    # The body that runs is a copy, with copies of its globals and cells. These show afterwards what
    # it has read and changed.
    scope = Scope(declaration.body)
    record = Record(decide, notes, has_hints=values is not None, known=known)
    like = None if values is None else first_array(kind, values)
    ordinal = _ordinal(values, like)
    body = FunctionBody(declaration.name, record, arrays_of(kind), ordinal, like)
    try:
        with recording(body):
            arguments = Arguments(declaration.names, kind, values).stand_ins(body)
            check(body, declaration.wanted, declaration.names, arguments)
            value = _call_followed(declaration, scope, arguments)
            _require_recordable(record)
            require_held(declaration.name, value)
            record.effects.append(Return(returned(body, value)))
        # The body has ended, so all of its changes to outside objects have happened by now.
        _require_unchanged(declaration.name, scope)
        if record.raised is not None:
            record.notes.catches_unseen = record.must_repeat = True
        is_error = False
    except Exception as error:
        _require_recordable(record)
        with_numbers(error)
        if record.raised is not None and record.raised is not error:
            record.notes.catches_unseen = True
        # In a call, the caller made the mistake and gets the error. Without a call, values are made
        # up, and a body's error on a path becomes part of the program.
        if values is not None:
            locate(error, declaration.body)
            raise
        # A program can raise only the exceptions in the format. Any other is an error in the body,
        # or a defect of culaunch.
        if type(error) not in oc.EXCEPTIONS or not is_of_body(error):
            _require_no_tokens(declaration.name, error)
            raise
        _end_in(record, error)
        is_error = True
    finally:
        body.close()
    return Run(record, body.uses, (*scope.reads, *body.reads), body.array_names, is_error)


class FunctionBody(TraceBody):
    """The run of a function's body, with the functions that it calls.

    Attributes
    ----------
    reads : list
        The names that the bodies of those functions read.
    """

    def __init__(
        self, name: str, recorded: Record, array_arguments: int, ordinal: int, like: Any
    ) -> None:
        super().__init__(name, recorded, array_arguments, ordinal)
        self.reads: list[Read] = []
        self._like = like

    def _enqueue(
        self, kernel: Any, configuration: Configuration, predicate: Any, args: tuple[Any, ...]
    ) -> None:
        """Record a launch."""
        trace_launch(self, kernel, configuration, predicate, args)

    def inline(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run the body of another function as part of this body."""
        declaration = function.declaration
        scope = Scope(declaration.body)
        value = inlined(self, declaration, scope.body, args, keywords)
        _require_unchanged(declaration.name, scope)
        self.reads += scope.reads
        return value

    def depends_on(self, container: Any, name: str | None, value: object) -> None:
        """Note that the recording depends on an entry of a dict, or on a cell."""
        self.reads.append((container, name, value))

    def sample(self, array: Any, *, whole: bool) -> Any:
        """Return an array of zeros like one of the body, or an empty one unless `whole`."""
        shape = tuple(getattr(size, "hint", size) for size in array.shape) if whole else (0,)
        with self.apart():
            return allocate_as(self._like, shape, array.dtype.name, self.ordinal, 1)

    def close(self) -> None:
        """End it: its stand-ins are invalid from now on."""
        # Objects of a body refer to each other, so they live until Python collects garbage. They
        # must not keep an array of the caller alive for so long.
        self._like = None
        self.is_open = False
        self.recorded.is_open = False


def inlined(
    body: Body, declaration: Declaration, function: Any, args: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:  # fmt: skip
    """Call a function's body with arguments from another body."""
    values = _bound(declaration, args, keywords)
    name = body.name
    body.name = declaration.name
    try:
        check(body, declaration.wanted, declaration.names, values)
        return call(declaration, function, values)
    finally:
        body.name = name


def call(declaration: Declaration, function: Any, values: list[Any]) -> Any:
    """Call with one value for each parameter."""
    args, keywords = declaration.as_passed(values)
    try:
        return function(*args, **keywords)
    except KernelNotFoundError as error:
        raise _with_line(error) from None
    except Exception as error:
        require_no_plain_kernel(error)
        raise


def _with_line(error: KernelNotFoundError) -> KernelNotFoundError:
    """Add the line of the body that asks for a missing kernel."""
    place, trace_back = None, error.__traceback__
    while trace_back is not None:
        if not is_ours(trace_back.tb_frame):
            place = Place(trace_back.tb_frame.f_code.co_filename, trace_back.tb_lineno)
        trace_back = trace_back.tb_next
    if place is None or str(error).startswith("at "):
        return error
    return KernelNotFoundError(f"at {place.text()}: {error}", log=error.log)


class recording:  # noqa: N801 - it is used as a statement
    """Pass launches of this thread to a body: ``with recording(body):``."""

    def __init__(self, body: Body) -> None:
        self._running = running(body)

    def __enter__(self) -> None:
        count_bodies(1)
        self._running.__enter__()

    def __exit__(self, *exception: Any) -> None:
        self._running.__exit__(*exception)
        count_bodies(-1)


def _call_followed(declaration: Declaration, scope: Scope, arguments: list[Any]) -> Any:
    return call(declaration, scope.body, arguments)


def _bound(declaration: Declaration, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Any]:
    import inspect

    bound = inspect.signature(declaration.body).bind(*args, **keywords)
    bound.apply_defaults()
    return [bound.arguments[name] for name in declaration.names]


def _require_recordable(record: Record) -> None:
    """Raise the recorded error, even if the body has caught it."""
    if record.refusal is not None:
        raise record.refusal


def _require_unchanged(name: str, scope: Scope) -> None:
    changed = scope.changed()
    if changed is not None:
        raise TypeError(
            f"the body of {name} changes {changed}. It runs once for each kind of arguments, so "
            "later calls would not make this change: return the value instead"
        )


def _ordinal(values: tuple[Any, ...] | None, like: Any) -> int:
    if values is None:
        return 0
    return current_driver().current_device() if like is None else array_info(like).device[1]


# ---- without a call: an exception ends a path


def _require_no_tokens(name: str, error: Exception) -> None:
    """Explain the error of a lookup with a text that contains an unknown number."""
    if has_token(str(error)):
        raise TypeError(
            f"the body of {name} looks up a str that contains a number, which only a call has: "
            "call the function"
        ) from error


def _end_in(record: Record, error: Exception) -> None:
    """End a path in the error that the body raises there."""
    # The record was closed when the body ended, because later operations do not belong to it.
    record.is_open = True
    text, registers = record.template(str(error))
    condition = record.constant(value=False)
    record.check("CHECK", (condition, oc.EXCEPTIONS.index(type(error)), *registers), text)
    # A path that ends in an error launches nothing. Earlier effects of the body are left out,
    # because checks come before every effect.
    record.effects[:] = [Return((oc.V_NONE,))]
