"""The package behind *The Physics of Learning*: closed forms, theories, simulators and the services the chapters share.

Dependencies run one way, from closed forms to theories to simulators; the services stand apart::

    gaussian                    averages over jointly Gaussian variables          (book: Gaussian averages)
      -> langevin, committee    one theory each                                   (book: Langevin dynamics; On-line learning)
        -> online               simulators that the theories are held against     (book: On-line learning)
    ledger, plot                services: the reproduction ledger, the figure style
    _checks                     argument checks behind every public function

A module, its test file and its chapter carry the same subject: ``lib/gaussian.py`` is tested by ``tests/test_gaussian.py``
and used by ``book/foundations/gaussian-averages.md``.  Import what you need by name: ``from lib import gaussian``.
"""

__version__ = "0.1.0"
