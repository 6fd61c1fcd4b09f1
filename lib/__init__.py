"""The package behind *The Physics of Learning*: closed forms, theories, simulators and the services the chapters share.

One package a part, named like its folder under ``book/``: what a chapter of ``book/scaling/`` computes is in
``lib/scaling/``, and ``lib/scaling/x.py`` is tested by ``tests/scaling/test_x.py``.  A part uses only parts before it
in reading order, and :mod:`lib.common` and :mod:`lib.services`, which use none.  A leading underscore marks what only a
package itself uses.  Import what you need by name: ``from lib.foundations import gaussian``.

Docstrings cite the five texts that the book works through by key:

han2021         M. Han, J. Park, T. Lee & J. H. Han, Phys. Rev. E 104, 034126 (2021).
worschech2024   R. Worschech & B. Rosenow, arXiv:2410.09005, version 1 (2024).
vanrossem2024   L. van Rossem & A. M. Saxe, ICML 2024, arXiv:2402.09142, version 1.
kukleva2024     E. Kukleva & V. Vanchurin, arXiv:2405.17391, before version 3 (2024).
ringel2025talk  Z. Ringel, slides of a talk, Oxford, 19 March 2025.
"""

__version__ = "0.2.0"
