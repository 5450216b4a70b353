"""Errors of kernels as SARIF."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from culaunch._base.checks import checked_list, checked_path
from culaunch._base.outputs import write_output
from culaunch._base.values import spell
from culaunch._errors import DriverError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable


def write_sarif(path: str | os.PathLike[str], errors: Iterable[DriverError]) -> None:
    """Write the emulator's reports as SARIF 2.1.0, which CI services show beside the source.

    Compile with ``line_info=True``, so a report has a line of the source. A path below the working
    folder is written relative to it, as GitHub expects. ``pytest --culaunch-sarif FILE`` writes the
    reports of the tests that fail.

    Parameters
    ----------
    path : str or os.PathLike
        The file, such as ``culaunch.sarif``.
    errors : iterable of DriverError
        Errors of kernels on the emulator. Without any, the file says that there was no error.

    Raises
    ------
    TypeError
        If `errors` contains anything else.
    ValueError
        If an error has no report: it is no error of a kernel on the emulator.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> from culaunch import testing
    >>> try:
    ...     kernel[1, 256](y, x, 2.0, 10**6)
    ... except cl.DriverError as error:
    ...     testing.write_sarif("culaunch.sarif", [error])
    """
    from culaunch._emulator import sarif_log, sarif_result

    results = []
    for error in checked_list("errors", errors, "errors of kernels"):
        if not isinstance(error, DriverError):
            raise TypeError(f"errors must contain only DriverError (got {spell(error)})")
        if error.report is None:
            raise ValueError(
                "errors must be of kernels on the emulator, whose report is not None (got "
                f"{spell(error)}): select the emulator with CULAUNCH_DRIVER=emulator"
            )
        results.append(sarif_result(error.report))
    text = json.dumps(sarif_log(results), indent=1)
    write_output(checked_path("path", path), text.encode())
