"""What builds and tests the book: run as ``python -m tools.build`` and ``python -m tools.notebooks`` (or by ``make``)."""
