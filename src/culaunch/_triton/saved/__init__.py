"""Sets of variants: what there is to write of one, what fits a call, how it is called."""
