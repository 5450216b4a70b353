"""The stand-ins for a body's arguments: arrays, views, pointers, structures."""
