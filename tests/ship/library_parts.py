"""The parts of a library, to be changed and put together again."""

import hashlib
import io
import json
import zipfile


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
