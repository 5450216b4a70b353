"""One script: the next run, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

# The outcomes of a script, and whether each is a fault of culaunch.
OUTCOMES = {
    "same": False,
    "different": True,
    "different, and no time for a second run of Triton": True,
    "different in two runs of Triton": False,
    "different where nothing was written": False,
    "failed the same way": False,
    "failed by Triton alone": False,
    "failed natively alone": True,
    "failed differently": True,
    # Only of the emulator: reads that a GPU may allow, and sizes that another GPU may have.
    "stopped at an illegal access": False,
    "refused by Triton's compiler": False,
    "failed both ways": False,
    "no time": False,
    "ran": False,  # and there was nothing to compare
}
FILLED = ("triton filled", "native filled")
_ILLEGAL = "CUDA_ERROR_ILLEGAL_ADDRESS"
_REFUSED = ("OutOfResources", "CompilationError")


@dataclass
class Script:
    """One script, and how it ended each way until now."""

    path: Path
    on_emulator: bool
    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Those of a way: where results differ, and a line that says how.
    differences: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its file's name."""
        return self.path.stem

    @property
    def different(self) -> list[str]:
        """Where native results differ from Triton's, which are the same in each of its runs."""
        varies = self.differences.get("triton again", {})
        return [path for path in self.differences.get("native", {}) if path not in varies]

    @property
    def reference(self) -> str:
        """Return the way whose result counts as correct."""
        return "interpreter" if self.on_emulator else "triton"

    @property
    def next_way(self) -> str | None:
        """Which way it is to be run next, if any."""
        wanted = self.ended.get(self.reference, {"ended": "ok"})
        if wanted["ended"] == "no time" and not self.on_emulator:
            return None
        for way in (self.reference, "native"):
            if way not in self.ended:
                return way
        if self.on_emulator or not self.differences["native"]:
            return None
        if "triton again" not in self.ended:
            return "triton again"
        if self.different:
            return next((way for way in FILLED if way not in self.ended), None)
        return None

    @property
    def outcome(self) -> str:
        """One of :data:`OUTCOMES`."""
        ways = (self.reference, "native")
        wanted, found = (self.ended.get(way, {"ended": "no time"}) for way in ways)
        how = (wanted["ended"], found["ended"])
        if self.on_emulator and (special := self._on_emulator_alone(wanted, found)):
            return special
        if "no time" in how:
            return "no time"
        if how == ("failed", "failed"):
            same = wanted["error"] == found["error"]
            return "failed the same way" if same else "failed differently"
        if "failed" in how:
            return f"failed {'natively' if how[0] == 'ok' else 'by Triton'} alone"
        if self.differences["native"]:
            again = self.ended.get("triton again", {"ended": "no time"})
            if again["ended"] == "no time" and not self.on_emulator:
                return "different, and no time for a second run of Triton"
            if not self.different:
                return "different in two runs of Triton"
            filled = [self.ended.get(way, {}).get("ended") for way in FILLED]
            if filled == ["ok", "ok"] and not self.differences[FILLED[1]]:
                return "different where nothing was written"
            return "different"
        return "same" if found.get("results") else "ran"

    @staticmethod
    def _on_emulator_alone(wanted: dict[str, Any], found: dict[str, Any]) -> str | None:
        if found["ended"] == "failed":
            if _ILLEGAL in found["error"]:
                return "stopped at an illegal access"
            if found["error"].startswith(_REFUSED):
                return "refused by Triton's compiler"
            return "failed both ways" if wanted["ended"] == "failed" else None
        # The interpreter cannot do all that kernels do.
        return "ran" if found["ended"] == "ok" != wanted["ended"] else None
