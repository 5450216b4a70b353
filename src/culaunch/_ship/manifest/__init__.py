"""The entries of a manifest: read, checked and written."""
