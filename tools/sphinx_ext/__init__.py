"""The book's own Sphinx extensions: pages made from the ledger, and the header's download and launch buttons."""
