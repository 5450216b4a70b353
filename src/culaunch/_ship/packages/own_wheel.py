"""culaunch's own wheel, rebuilt from its installation, for machines without an index."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path

from culaunch._base.outputs import write_output
from culaunch._ship.packages.wheel import archive

# The installer writes these files, so they are not part of a wheel.
_OF_AN_INSTALLATION = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json")


def write_own_wheel(directory: str) -> str:
    """Write a wheel of the running culaunch, and return its path.

    It has the installation's tags, so it fits the same Python and system.

    Raise FileNotFoundError if culaunch is not installed from a wheel, as an editable installation
    is not.
    """
    # Not relative to this file, which may move.
    package = Path(str(sys.modules["culaunch"].__file__)).parent
    try:
        files = importlib.metadata.distribution("culaunch").files or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    infos = [file for file in files if file.parts[0].endswith(".dist-info")]
    if not infos or Path(str(infos[0].locate())).parents[1] != package.parent:
        raise FileNotFoundError(
            f"culaunch in {package} must be installed from a wheel, because its files become the "
            "wheel of the package: install it with pip, without --editable"
        )
    contents = {
        f"{package.name}/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    contents |= {
        file.as_posix(): Path(str(file.locate())).read_bytes()
        for file in sorted(infos)
        if file.name not in _OF_AN_INSTALLATION
    }
    folder = infos[0].parts[0]
    tags = [
        line.removeprefix("Tag:").strip()
        for line in contents[f"{folder}/WHEEL"].decode().splitlines()
        if line.startswith("Tag:")
    ]
    # A wheel's name contains its tags as sets of their parts (PEP 425).
    columns = zip(*(tag.split("-") for tag in tags), strict=True)
    tag = "-".join(".".join(sorted(set(column))) for column in columns)
    path = os.path.join(directory, f"{folder.removesuffix('.dist-info')}-{tag}.whl")
    write_output(path, archive(contents, folder))
    return path
