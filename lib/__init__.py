"""The package behind *The Physics of Learning*: closed forms, theories, simulators and the services the chapters share.

One package a part, named like its folder under ``book/``: what a chapter of ``book/scaling/`` computes is in
``lib/scaling/``, and ``lib/scaling/x.py`` is tested by ``tests/scaling/test_x.py``.  A part uses only parts before it
in reading order, and :mod:`lib.common` and :mod:`lib.services`, which use none.  A leading underscore marks what only a
package itself uses.  Import what you need by name: ``from lib.foundations import gaussian``.
"""

__version__ = "0.2.0"
