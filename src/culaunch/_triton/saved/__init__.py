"""Sets of variants: their contents, the selection, and the call."""
