"""`python -m graycert`."""

from graycert.cli.main import run

if __name__ == "__main__":
    run()
