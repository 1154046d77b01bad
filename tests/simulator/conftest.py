"""What the tests of all rooms share lies in this folder: pytest puts the folder of a ``conftest.py`` on the path."""
