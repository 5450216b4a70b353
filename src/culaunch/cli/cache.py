"""``culaunch cache``: look at, check, share and empty the compile cache."""

from __future__ import annotations

import dataclasses
import json

import click

import culaunch as cl
from culaunch._base.values import counted


@click.group("cache")
def command() -> None:
    """Inspect, check, share and empty the cache."""


@command.command("path")
def path() -> None:
    """Print where the cache is."""
    click.echo(cl.cache.Cache().path)


@command.command("info")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(as_json: bool) -> int:
    """Print the cache's path and contents.

    The exit code is 1 if the cache cannot be used.
    """
    found = cl.cache.Cache().info()
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(found), indent=2))
        return 0 if found.usable else 1
    libraries = f" ({found.libraries} of load_inline)" if found.libraries else ""
    leftovers = f", {counted(found.leftovers, 'unfinished file')}" if found.leftovers else ""
    click.echo(f"path       {found.path}")
    click.echo(f"usable     {'yes' if found.usable else f'no: {found.reason}'}")
    click.echo(f"entries    {found.entries}{libraries}")
    click.echo(f"size       {_human(found.size)} of at most {_human(found.max_bytes)}{leftovers}")
    for directory in found.bundles:
        click.echo(f"bundle     {directory}")
    if found.remote:
        click.echo(f"remote     {found.remote}")
    return 0 if found.usable else 1


@command.command("verify")
@click.option("--drop", is_flag=True, help="Remove invalid entries.")
def verify(drop: bool) -> int:
    """Check every entry.

    The exit code is 1 if an entry is damaged or the cache cannot be used.
    """
    cache = cl.cache.Cache()
    bad = cache.verify(drop=drop)
    for entry in bad:
        click.echo(f"bad: {entry}{' (removed)' if drop else ''}")
    click.echo(f"{counted(cache.info().entries, 'entry')}, {len(bad)} bad")
    return 1 if bad else 0


@command.command("clear")
def clear() -> None:
    """Remove every entry."""
    cache = cl.cache.Cache()
    removed = cache.clear()
    click.echo(f"removed {counted(removed, 'entry')} from {cache.path}")


@command.command("push")
@click.option("--remote", help="The remote cache's URL; by default $CULAUNCH_CACHE_REMOTE.")
def push(remote: str | None) -> None:
    """Upload entries that the remote cache lacks."""
    cache = cl.cache.Cache(remote=remote)
    click.echo(f"pushed {counted(cache.push(), 'entry')} to {cache.info().remote}")


@command.command("pull")
@click.option("--remote", help="The remote cache's URL; by default $CULAUNCH_CACHE_REMOTE.")
def pull(remote: str | None) -> None:
    """Download entries that this cache lacks."""
    cache = cl.cache.Cache(remote=remote)
    click.echo(f"pulled {counted(cache.pull(), 'entry')} from {cache.info().remote}")


@command.command("sync")
@click.option("--remote", help="The remote cache's URL; by default $CULAUNCH_CACHE_REMOTE.")
def sync(remote: str | None) -> None:
    """Pull, then push."""
    cache = cl.cache.Cache(remote=remote)
    pulled, pushed = cache.pull(), cache.push()
    click.echo(f"pulled {pulled} and pushed {counted(pushed, 'entry')}, {cache.info().remote}")


def _human(size: int) -> str:
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return counted(size, "byte") if unit == "bytes" else f"{amount:.1f} {unit}"
