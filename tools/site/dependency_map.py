"""The drawing of the map of the chapters, as the text of an SVG whose colors come from the page.

One band a part, one column a rank (see ``dependencies.ranks``).  Arrows inside a part run from left to right.  Those
between parts keep to the margins: on the left they come from one chapter and go to all that need it, on the right they
gather what a chapter of the last part needs.  So no line passes behind a box.
"""

import html
import textwrap

from tools.build import dependencies

BOX, HEIGHT = 104, 38  # of a chapter
ACROSS, DOWN = 22, 16  # between boxes
LANE, TITLE, MARGIN = 8, 27, 4  # between lines in a margin; heading of a band; around everything


def _places(found):
    """Column and row of every chapter in its band; a part whose chapters do not need each other stands in one row, on
    the right.
    """
    ranks, arrows, made = dependencies.ranks(found), list(dependencies.arrows(found)), {}
    columns = 1 + max(ranks.values())
    for part in dict.fromkeys(chapter.part for chapter in found.values()):
        pages = [page for page, chapter in found.items() if chapter.part == part]
        if not any(ranks[page] for page in pages):
            made |= {page: (max(columns, len(pages)) - len(pages) + column, 0) for column, page in enumerate(pages)}
            continue
        taken = set()
        for page in sorted(pages, key=ranks.get):  # stable: reading order within a column
            rows = [made[needed][1] for needed, name in arrows if name == page and needed in pages]
            row = min(rows, default=0)
            while (ranks[page], row) in taken:
                row += 1
            taken.add((ranks[page], row))
            made[page] = ranks[page], row
    return made


class Layout:
    """Where everything stands, in pixels."""

    def __init__(self, found):
        self.found, self.places = found, _places(found)
        self.parts = list(dict.fromkeys(chapter.part for chapter in found.values()))
        between = [pair for pair in dependencies.arrows(found) if found[pair[0]].part != found[pair[1]].part]
        last = self.parts[-1]
        self.left = list(dict.fromkeys(needed for needed, page in between if found[page].part != last))
        self.right = list(dict.fromkeys(page for _, page in between if found[page].part == last))
        self.indent = MARGIN + LANE * (len(self.left) + 1)
        columns = 1 + max(column for column, _ in self.places.values())
        self.inner = columns * BOX + (columns - 1) * ACROSS
        self.width = self.indent + self.inner + LANE * (len(self.right) + 1) + MARGIN
        self.tops, y = {}, MARGIN
        for part in self.parts:
            self.tops[part] = y
            rows = 1 + max(self.places[page][1] for page, chapter in found.items() if chapter.part == part)
            y += TITLE + rows * (HEIGHT + DOWN)
        self.height = y

    def corner(self, page):
        """Upper left corner of a chapter's box."""
        column, row = self.places[page]
        return self.indent + column * (BOX + ACROSS), self.tops[self.found[page].part] + TITLE + row * (HEIGHT + DOWN)

    def arrow(self, needed, page):
        """The path of an arrow between two boxes."""
        (x, y), (to_x, to_y) = self.corner(needed), self.corner(page)
        middle, to_middle = y + HEIGHT / 2, to_y + HEIGHT / 2
        if self.found[needed].part == self.found[page].part:
            turn = to_x - ACROSS
            return (
                f"M{x + BOX} {middle}H{turn}C{turn + ACROSS / 2} {middle} {turn + ACROSS / 2} {to_middle} "
                f"{to_x - 1} {to_middle}"
            )
        if page in self.right:
            number = self.right.index(page)
            lane, shift = self.indent + self.inner + LANE * (number + 1), 4 + 6 * number
            return f"M{x + BOX / 2 + shift} {y + HEIGHT}v{shift}H{lane}V{to_y - 4 - shift}H{to_x + BOX / 2}V{to_y - 1}"
        lane = MARGIN + LANE * self.left.index(needed)
        start = f"M{x} {middle + 9}H{lane}" if self.places[needed][0] == 0 else f"M{x + BOX / 2} {y + HEIGHT}v6H{lane}"
        return start + (
            f"V{to_middle}H{to_x - 1}" if self.places[page][0] == 0 else f"V{to_y - 5}H{to_x + BOX / 2}V{to_y - 1}"
        )


def _box(layout, page, address):
    chapter = layout.found[page]
    x, y = layout.corner(page)
    lines = textwrap.wrap(chapter.short, 14, break_long_words=False)[:3]
    first = y + HEIGHT / 2 + 4 - 7 * (len(lines) - 1)
    text = "".join(
        f'<tspan x="{x + BOX / 2}" y="{first + 14 * number}">{html.escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    return (
        f'<a href="{html.escape(address)}"><title>{html.escape(chapter.title)}</title>'
        f'<rect class="chapter" x="{x}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="5"/><text>{text}</text></a>'
    )


def draw(found, address):
    """The map as SVG.

    Parameters
    ----------
    found : dict          the chapters (see ``dependencies.chapters``)
    address : callable    the link to a page

    Returns
    -------
    str
    """
    layout = Layout(found)
    drawn = [
        f'<svg viewBox="0 0 {layout.width} {layout.height}" role="group" aria-labelledby="dependency-title '
        'dependency-text">',
        '<title id="dependency-title">Dependency map of the chapters</title>',
        '<desc id="dependency-text">One box a chapter, one band a part; arrows lead from a chapter to those that '
        "need it. The list"
        " below says the same in words.</desc>",
        '<defs><marker id="dependency-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for part, top in layout.tops.items():
        drawn.append(f'<text class="part" x="{layout.indent}" y="{top + 15}">{html.escape(part)}</text>')
    drawn += [
        f'<path class="arrow" marker-end="url(#dependency-tip)" d="{layout.arrow(*pair)}"/>'
        for pair in dependencies.arrows(found)
    ]
    drawn += [_box(layout, page, address(page)) for page in found]
    return "\n".join([*drawn, "</svg>"])
