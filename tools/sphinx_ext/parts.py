"""The parts of the book as the table of contents declares them."""

from sphinx import addnodes


def parts(env):
    """Pairs of caption and document names, in reading order; a book without captions has none."""
    trees = env.tocs[env.config.root_doc].findall(addnodes.toctree)
    return [(tree["caption"], list(tree["includefiles"])) for tree in trees if tree.get("caption")]
