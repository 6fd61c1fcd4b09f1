"""How large the words of a figure are on a telephone, from the SVG that matplotlib wrote.

Glyphs are paths, 100 units high for a font of 100 points, inside a group that is scaled to the size of the text; what
is smaller inside that group, an index or an exponent, is not counted.
"""

import re

TELEPHONE = 358  # pixels between the margins of a page that is 390 wide
_WIDTH = re.compile(r'viewBox="0 0 ([\d.]+) ')
_TEXT = re.compile(r'<g[^>]*transform="translate\([^)]*\)(?: rotate\([^)]*\))? scale\(([\d.]+)')


def smallest(svg, *, width=TELEPHONE):
    """Pixels of the smallest text of a figure, `svg`, shown at most `width` pixels wide; infinite without text.

    >>> smallest('<svg viewBox="0 0 716 400"><g transform="translate(3 4) scale(0.12 -0.12)">…</g></svg>')
    6.0
    """
    points = float(_WIDTH.search(svg)[1])
    shrunk = min(4 / 3, width / points)  # pixels a point; a browser shows a small figure at its own size
    return round(min((100 * float(size) * shrunk for size in _TEXT.findall(svg)), default=float("inf")), 2)
