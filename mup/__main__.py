"""``python -m mup`` is ``mup``."""

from mup.cli.main import main

if __name__ == "__main__":
    main()
