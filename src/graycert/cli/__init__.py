"""The command line: one file per command, each one a call of the Python API."""
