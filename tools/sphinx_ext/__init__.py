"""The book's own Sphinx extensions: pages made from the ledger, the indexes, the header's download and launch
buttons.
"""
