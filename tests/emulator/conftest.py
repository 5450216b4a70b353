"""Make the corpus importable, and run its cases on an emulated device."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
