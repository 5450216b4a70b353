"""``python -m culaunch``: the same as the command ``culaunch``."""

from culaunch.cli import main

if __name__ == "__main__":
    main()
