"""The group of commands: each is the ``command`` of a module here, loaded when it is used."""

from __future__ import annotations

import difflib
import errno
import importlib
from typing import Any

import click

import culaunch as cl
from culaunch.cli._messages import print_error, print_usage_error

# In the order in which --help lists them.
_COMMANDS = (
    "demo", "doctor", "inspect", "compile", "link", "fatbin", "run", "emulate", "cache", "bundle",
    "embed", "package", "stubs", "triton", "tune",
)  # fmt: skip

# The names that other programs use for the commands here.
_OTHER_WORDS = {
    "build": "compile", "cuobjdump": "inspect", "disassemble": "inspect", "dump": "inspect",
    "env": "doctor", "exec": "run", "info": "doctor", "launch": "run", "ls": "inspect",
    "nvcc": "compile", "nvlink": "link", "show": "inspect", "version": "--version",
}  # fmt: skip


class _Commands(click.Group):
    """Loads a command's module only when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"{__package__}.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. A mistake that the user can fix is one message and the code 1."""
        try:
            return super().invoke(ctx)
        except cl.InternalError:
            raise  # a defect keeps its traceback
        except (cl.CulaunchError, OSError, ValueError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # the reader of the output has left: click ends quietly
            name = ctx.invoked_subcommand
            print_error(error, None if name is None else self.get_command(ctx, name))
            return 1

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            other = difflib.get_close_matches(args[0], _OTHER_WORDS, n=1, cutoff=0.8)
            near = [_OTHER_WORDS[word] for word in other]
            near = near or difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            text = f"No such command {args[0]!r}. Did you mean {near[0]!r}?"
            raise click.UsageError(text, ctx) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(cl.__version__, prog_name="culaunch", message="%(prog)s %(version)s")
def group() -> None:
    """Compile, inspect, launch, embed and ship CUDA kernels."""


def _print_directory(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    """Print the directory that the option is named after, and leave."""
    if wanted and not ctx.resilient_parsing:
        click.echo(getattr(cl.cpp, str(option.name))())
        ctx.exit()


# For build systems: `cmake -Dculaunch_DIR=$(culaunch --cmake-dir)`.
for _name in ("cmake_dir", "include_dir"):
    if _name in cl.__all__:
        group.params.append(
            click.Option(
                [f"--{_name.replace('_', '-')}"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_directory,
                help=f"Print the {_name.removesuffix('_dir')} directory and exit.",
            )
        )


def run(arguments: list[str] | None) -> int:
    """Run the group and return the exit code."""
    try:
        result: Any = group(arguments, prog_name="culaunch", standalone_mode=False)
    except click.exceptions.Abort:
        print_error("interrupted")
        return 130
    except click.ClickException as error:
        print_usage_error(error)
        return error.exit_code
    return result if isinstance(result, int) else 0
