"""culaunch's own wheel, made again from its installation, for machines without an index."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

from culaunch._base.outputs import write_output
from culaunch._ship.wheel import archive

# The installer writes these files, so a wheel does not have them.
_OF_AN_INSTALLATION = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json")


def write_own_wheel(directory: str) -> str:
    """Write a wheel of the culaunch that runs, and return its path.

    It is for the Python and the system that the installation is for, as its own tags say.

    Raises
    ------
    FileNotFoundError
        If culaunch is not installed from a wheel, as an editable installation is not.
    """
    package = Path(__file__).parents[1]
    try:
        files = importlib.metadata.distribution("culaunch").files or ()
    except importlib.metadata.PackageNotFoundError:
        files = ()
    infos = [file for file in files if file.parts[0].endswith(".dist-info")]
    if not infos or Path(str(infos[0].locate())).parents[1] != package.parent:
        raise FileNotFoundError(
            f"culaunch in {package} is not installed from a wheel, so no wheel can be made from "
            "it: install it with pip, not with --editable"
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
    # Several tags of a wheel are in its name as the sets of their parts (PEP 425).
    columns = zip(*(tag.split("-") for tag in tags), strict=True)
    tag = "-".join(".".join(sorted(set(column))) for column in columns)
    path = os.path.join(directory, f"{folder.removesuffix('.dist-info')}-{tag}.whl")
    write_output(path, archive(contents, folder))
    return path
