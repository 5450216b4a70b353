"""Write the bill of materials of a wheel: third-party parts, and libraries it was built against.

CMake calls this for each wheel, which carries the result in ``.dist-info/sboms/`` (PEP 770). The
format is CycloneDX 1.6. There is no time and no random number in it: the same build gives the same
bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Component:
    """A work of others, and how culaunch has to do with it."""

    name: str
    license: str  # SPDX, or a name
    purl: str
    how: str
    version: str = ""
    # Files that restate declarations of it. Includes that begin so are its headers.
    files: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    is_in_the_wheel: bool = True

    def record(self) -> dict[str, Any]:
        """Return it as CycloneDX has it."""
        is_spdx = re.fullmatch(r"[A-Za-z0-9.+-]+", self.license) and "-" in self.license
        if " WITH " in self.license:
            licenses: dict[str, Any] = {"expression": self.license}
        else:
            licenses = {"license": {"id" if is_spdx else "name": self.license}}
        return {
            "type": "library",
            "bom-ref": self.purl,
            "name": self.name,
            **({"version": self.version} if self.version else {}),
            "description": self.how,
            "scope": "required" if self.is_in_the_wheel else "excluded",
            "licenses": [licenses],
            "purl": self.purl,
            **(
                {"properties": [{"name": "culaunch:file", "value": file} for file in self.files]}
                if self.files
                else {}
            ),
        }


RESTATED = "declarations of its binary interface, written anew"
COMPILED_AGAINST = "its headers were compiled against; nothing of it is in the wheel"
COMPONENTS = (
    Component(
        "dlpack", "Apache-2.0", "pkg:github/dmlc/dlpack@v1.3", RESTATED, "1.3",
        files=("csrc/formats/dlpack.h",),
    ),
    Component(
        "xla", "Apache-2.0", "pkg:github/openxla/xla", RESTATED + " (FFI, version 0.3)",
        files=("csrc/xla/abi.h",),
    ),
    Component(
        "pytorch", "BSD-3-Clause", "pkg:github/pytorch/pytorch",
        RESTATED + " (the stable C interface)", files=("csrc/torch/interface.h",),
    ),
    Component(
        "apache-tvm-ffi", "Apache-2.0", "pkg:pypi/apache-tvm-ffi",
        "headers of the wheel include its headers, which the wheel does not have",
        includes=("tvm/ffi/",), is_in_the_wheel=False,
    ),
    Component(
        "nvidia-cuda-cccl", "Apache-2.0 WITH LLVM-exception", "pkg:pypi/nvidia-cuda-cccl",
        "code that is generated at run time includes its headers, which the wheel does not have",
        includes=("cuda/std/",), is_in_the_wheel=False,
    ),
)  # fmt: skip
# The C++ runtime, by the name of the library.
RUNTIMES = {
    "libstdc++": ("gcc", "GPL-3.0-or-later WITH GCC-exception-3.1", "pkg:generic/gcc"),
    "libc++": ("llvm", "Apache-2.0 WITH LLVM-exception", "pkg:github/llvm/llvm-project"),
}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--own-version", action="version", version=own_version(), help="print culaunch's version"
    )
    parser.add_argument("--cuda", type=Path, required=True, help="the folder of cuda.h")
    parser.add_argument("--python", required=True, help="the version compiled against: 3.12")
    parser.add_argument("--runtime", choices=RUNTIMES, required=True, help="the C++ library")
    parser.add_argument("--static-runtime", action="store_true", help="it is in the extension")
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    text = document(
        cuda_version(options.cuda), options.python, options.runtime, options.static_runtime
    )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text)


def document(cuda: str, python: str, runtime: str, is_static: bool) -> str:
    """Return the bill of materials of a wheel that was built with these."""
    name, license_, purl = RUNTIMES[runtime]
    how = (
        f"{runtime} and the unwinder are linked into the extension"
        if is_static
        else f"the extension is linked with the system's {runtime}"
    )
    components = (
        *COMPONENTS,
        Component(
            "nvidia-cuda-runtime", "NVIDIA CUDA Toolkit EULA", "pkg:pypi/nvidia-cuda-runtime",
            COMPILED_AGAINST, cuda, includes=("cuda.h",), is_in_the_wheel=False,
        ),
        Component(
            "cpython", "PSF-2.0", "pkg:generic/cpython", COMPILED_AGAINST, python,
            includes=("Python.h", "structmember.h", "frameobject.h"), is_in_the_wheel=False,
        ),
        Component(name, license_, purl, how, is_in_the_wheel=is_static),
    )  # fmt: skip
    version = own_version()
    this = f"pkg:pypi/culaunch@{version}"
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": this,
                "name": "culaunch",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": this,
            }
        },
        "components": [component.record() for component in components],
        "dependencies": [
            {"ref": this, "dependsOn": [one.purl for one in components if one.is_in_the_wheel]}
        ],
    }
    return json.dumps(bill, indent=2) + "\n"


def own_version() -> str:
    """Read the version from the header, its only source."""
    header = (ROOT / "include" / "culaunch" / "version.h").read_text()
    return ".".join(re.findall(r"#define CULAUNCH_VERSION_\w+ (\d+)", header)[:3])


def cuda_version(folder: Path) -> str:
    """Read the version of CUDA from its header."""
    found = re.search(r"#define CUDA_VERSION (\d+)", (folder / "cuda.h").read_text())
    if found is None:
        sys.exit(f"{folder / 'cuda.h'} has no CUDA_VERSION")
    return f"{int(found[1]) // 1000}.{int(found[1]) % 1000 // 10}"


if __name__ == "__main__":
    main()
