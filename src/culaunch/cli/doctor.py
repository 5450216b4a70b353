"""``culaunch doctor``: what this machine has, and what is wrong with it."""

from __future__ import annotations

import json

import click

import culaunch as cl
from culaunch.cli._options import driver_option


@click.command("doctor")
@driver_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> int:
    """Say what drivers, compilers and frameworks are here.

    Each line is ok, missing (with the command that gets it; few need everything) or BROKEN (with
    the reason). The exit code is 1 if something is broken. Bug reports should have it.
    """
    found = cl.machine.doctor()
    click.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))
    return 1 if found.broken else 0
