"""``culaunch doctor``: report the parts of this machine, and their problems."""

from __future__ import annotations

import json

import click

import culaunch as cl
from culaunch.cli._options import driver_option


@click.command("doctor")
@driver_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> int:
    """Report drivers, devices, compilers and frameworks.

    Each line is ok, missing (with the command that gets it; few need everything) or BROKEN (with
    the reason). The exit code is 1 if something is broken. Include the output in bug reports.
    """
    found = cl.machine.doctor()
    click.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))
    return 1 if found.broken else 0
