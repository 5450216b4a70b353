"""The parts of a library, to be changed and put together again."""

import hashlib
import io
import json
import random
import struct
import tempfile
import zipfile
from pathlib import Path

import culaunch as cl


def saved_bytes(functions, **options):
    """Return what ``culaunch.ship.save`` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "saved.culib")
        cl.ship.save(functions, path, **options)
        return path.read_bytes()


def parts_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(contents.pop("manifest.json")), contents


def packed(manifest, contents):
    """Make a library of a manifest and members, with the right SHA-256 of each."""
    manifest["members"] = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in contents.items()
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, content in contents.items():
            archive.writestr(name, content)
    return stream.getvalue()


def mutants(manifest, contents, name, seed):
    """Yield libraries in which some words of a program are others: small, large, and each other's.

    Other tests give hostile words to the extension directly; here they come from a file.
    """
    words = list(struct.unpack(f"<{len(contents[name]) // 8}q", contents[name]))
    numbers = (0, 1, -1, 2, 255, 1 << 31, 1 << 32, (1 << 63) - 1, -(1 << 63))
    rng = random.Random(seed)
    for _ in range(150):
        mutant = list(words)
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(len(mutant))
            mutant[at] = rng.choice((*numbers, rng.choice(words), mutant[at] ^ 1))
        yield packed(manifest, {**contents, name: struct.pack(f"<{len(mutant)}q", *mutant)})
