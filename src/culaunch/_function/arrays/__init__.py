"""Arrays of a body that stand for arguments: views, pointers, structures."""
