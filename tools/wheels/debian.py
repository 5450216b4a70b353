"""Unpack Debian packages, and what they need, into a folder: nothing is installed.

``debian.py SUITE ARCHITECTURE FOLDER PACKAGE...``, such as ``bookworm arm64 arm python3.11``: so a
release is tried on Pythons of other machines, and compiled by an old compiler for an old libc.
Works where there is apt; needs no rights.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
import urllib.parse
from pathlib import Path

MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", help="such as bookworm")
    parser.add_argument("architecture", help="such as arm64")
    parser.add_argument("folder", type=Path)
    parser.add_argument("packages", nargs="+")
    options = parser.parse_args()
    unpack(options.suite, options.architecture, options.packages, options.folder)


def unpack(suite: str, architecture: str, packages: list[str], folder: Path) -> None:
    """Unpack the packages of a suite and all that they depend on."""
    with tempfile.TemporaryDirectory() as name:
        state = Path(name)
        apt = private_apt(state, suite, architecture)
        command = ["apt-get", "install", "--yes", "--no-install-recommends", "--print-uris"]
        said = run([*command, *packages], apt, state)
        for uri in re.findall(r"^'(\S+)'", said, re.MULTILINE):
            archive = state / urllib.parse.unquote(uri.rpartition("/")[2])
            run(["apt-helper", "download-file", uri, str(archive)], apt, state)
            folder.mkdir(parents=True, exist_ok=True)
            run(["dpkg-deb", "--extract", str(archive), str(folder)], apt, state)
            archive.unlink()
    make_usable(folder)


def private_apt(state: Path, suite: str, architecture: str) -> dict[str, str]:
    """Return the environment of an apt that has one suite and knows nothing as installed."""
    for part in ("lists/partial", "archives/partial", "parts"):
        (state / part).mkdir(parents=True)
    (state / "status").touch()
    (state / "sources.list").write_text(f"deb [signed-by={KEYRING}] {MIRROR} {suite} main\n")
    (state / "conf").write_text(
        f"""
        Dir::State "{state}"; Dir::State::status "{state}/status";
        Dir::State::Lists "{state}/lists"; Dir::Cache "{state}";
        Dir::Etc::SourceList "{state}/sources.list"; Dir::Etc::SourceParts "{state}/parts";
        Dir::Etc::Parts "{state}/parts"; Dir::Etc::PreferencesParts "{state}/parts";
        APT::Architecture "{architecture}"; APT::Architectures {{ "{architecture}"; }};
        Acquire::Languages "none"; Acquire::Check-Valid-Until "false"; APT::Sandbox::User "root";
        """
    )
    environment = {**os.environ, "APT_CONFIG": str(state / "conf")}
    environment["PATH"] = f"{environment['PATH']}:/usr/lib/apt:/usr/sbin"
    run(["apt-get", "--quiet", "update"], environment, state)
    return environment


def make_usable(folder: Path) -> None:
    """Let links stay in the folder, and make those of a merged /usr, which no package has."""
    for name in ("lib", "lib64"):
        if (folder / "usr" / name).exists() and not (folder / name).exists():
            (folder / name).symlink_to(f"usr/{name}")
    for path in folder.rglob("*"):
        if path.is_symlink() and os.readlink(path).startswith("/"):
            target = folder / os.readlink(path)[1:]
            path.unlink()
            path.symlink_to(os.path.relpath(target, path.parent))


def run(command: list[str], environment: dict[str, str], state: Path) -> str:
    """Run a command, and return its output."""
    done = subprocess.run(
        command, check=False, env=environment, cwd=state, text=True, capture_output=True
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
