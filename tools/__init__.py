"""What builds and tests the book: run as ``python -m tools.build.book`` and ``python -m tools.build.notebooks`` (or by ``make``)."""
