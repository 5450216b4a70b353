"""The IPython extension: ``%load_ext culaunch``."""

from culaunch._notebook.extension import load_ipython_extension

__all__ = ["load_ipython_extension"]
