"""A problem set of two problems that needs nothing but Python, for the tests of the tools."""

import shutil

from tools.build import project
from tools.course import assignments

SOURCE = '''---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {name: python3, display_name: Python 3, language: python}
assignment: {title: Small, part: "Part I", chapters: [a], minutes: 5}
---
# Small set

## Halves (10 points)

```{code-cell} ipython3
import math
```

```{code-cell} ipython3
---
problem: {kind: answer, id: half}
---
def half(x):
    """Half of a number."""
    ### BEGIN SOLUTION
    quotient_of_two = x / 2
    return quotient_of_two
    ### END SOLUTION
```

```{code-cell} ipython3
---
problem: {kind: wrong, replaces: half, loses: [half-of-odd]}
---
def half(x):
    return x // 2  # whole numbers only
```

```{code-cell} ipython3
---
problem: {kind: test, id: half-of-even, points: 1}
---
assert half(4) == 2, "half of four"
```

```{code-cell} ipython3
---
problem: {kind: test, id: half-of-odd, points: 2}
---
assert half(0) == 0
### BEGIN HIDDEN TESTS
assert math.isclose(half(3), 1.5), "numbers need not be even"
### END HIDDEN TESTS
```

```{code-cell} ipython3
---
problem: {kind: answer, id: twice}
---
### BEGIN SOLUTION
twice_seven = 2 * 7
### END SOLUTION
```

```{code-cell} ipython3
---
problem: {kind: wrong, replaces: twice, loses: [twice-value]}
---
twice_seven = 7 ** 2
```

```{code-cell} ipython3
---
problem: {kind: test, id: twice-value, points: 4}
---
assert twice_seven > 7
### BEGIN HIDDEN TESTS
assert twice_seven == 14
### END HIDDEN TESTS
```

+++ {"problem": {"kind": "essay", "id": "why", "points": 3}}

Because one and one is two. Marks: 3 for counting.

+++

The end.
'''


def write(root, text=SOURCE, name="small"):
    """A checkout that has this problem set and the course's settings; returns its root."""
    for folder in ("book/assignments", "tools/course"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "book" / "assignments" / f"{name}.md").write_text(text, encoding="utf-8")
    for settings in assignments.SETTINGS:
        shutil.copy(project.ROOT / "tools" / "course" / settings, root / "tools" / "course")
    return root
