"""The sources that were compiled from text in this process, for messages that name their lines.

Line information names a file. A text is in no file, so the emulator finds it here, by the image.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict

_MOST = 64

_texts: OrderedDict[bytes, tuple[str, str]] = OrderedDict()


def keep_source_text(image: bytes, name: str, text: str) -> None:
    """Keep the text of an image with line information, until many others have come.

    Parameters
    ----------
    image : bytes
        The result of the compiler.
    name : str
        The name of the text in line information, without its folder.
    text : str
        The source.
    """
    _texts[_key(image)] = (name, text)
    while len(_texts) > _MOST:
        _texts.pop(next(iter(_texts)), None)


def source_lines(image: str, file: str) -> list[str]:
    """Return the lines of a file of line information that was text; empty if it is not known.

    Parameters
    ----------
    image : str
        The PTX.
    file : str
        The file that its line information names.
    """
    name, text = _texts.get(_key(image.encode()), ("", ""))
    return text.splitlines() if name and name == os.path.basename(file) else []


def _key(image: bytes) -> bytes:
    return hashlib.blake2b(image.rstrip(b"\0"), digest_size=16).digest()
