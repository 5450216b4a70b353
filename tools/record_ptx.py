#!/usr/bin/env python3
"""Record the results of random PTX programs on a GPU, for the emulator's tests to replay.

Run it on a machine with a GPU and culaunch installed::

    python tools/record_ptx.py --output programs.json.xz

The file has the text of each program, and the words that it stored. So it stays valid when the
generator (tests/emulator/random_ptx.py) changes. The emulator runs each program, too. Differences
are printed, and recorded with the GPU's result; ``--agreed`` leaves these programs out.
"""

from __future__ import annotations

import argparse
import base64
import json
import lzma
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "emulator"))

import random_ptx

import culaunch as cl
from culaunch import testing

LIMIT = 1_000_000  # bytes: the file is kept in the repository


def main() -> int:
    """Record, and say how many programs the emulator runs as the GPU does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="the file to write (.json.xz)")
    parser.add_argument("--count", type=int, default=200, help="programs (default: 200)")
    parser.add_argument("--first", type=int, default=10_000, help="the first seed")
    parser.add_argument(
        "--agreed", action="store_true", help="leave out what the emulator disagrees on"
    )
    options = parser.parse_args()

    programs, wrong = [], []
    for seed in range(options.first, options.first + options.count):
        text, given = random_ptx.program(seed), random_ptx.inputs(seed)
        with testing.use_driver("cuda"):
            device = cl.driver.Device(0)
            real = random_ptx.launch(cl, text, given)
        with testing.use_driver("emulator"):
            try:
                emulated = random_ptx.launch(cl, text, given)
            except cl.CulaunchError as error:
                found = [f"seed {seed}: {error}"]
            else:
                found = random_ptx.differences(seed, emulated, real)
        wrong += found
        if found and options.agreed:
            continue
        words = base64.b64encode(real.astype("<u4").tobytes()).decode()
        programs.append({"seed": seed, "text": text, "words": words})

    recorded = {"device": device.name, "arch": device.arch, "programs": programs}
    data = lzma.compress(json.dumps(recorded).encode(), preset=9 | lzma.PRESET_EXTREME)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_bytes(data)
    print(*wrong, sep="\n")
    print(f"{options.output}: {len(programs)} programs, {len(data):,} bytes")
    print(f"the emulator disagrees on {len(wrong)} of them")
    return 1 if len(data) > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
