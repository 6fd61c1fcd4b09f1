"""What builds and tests the book.

Run as ``python -m tools.build.book`` and ``python -m tools.build.notebooks`` (or by ``make``).
"""
