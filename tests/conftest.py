"""Property tests try the same examples in every run; HYPOTHESIS_PROFILE=explore tries new ones."""

import os

from hypothesis import settings

settings.register_profile("book", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "book"))
