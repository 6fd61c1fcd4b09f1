"""The code in a solution of the book prints what its text says: common motion parts the outputs of kinked nets only."""

import re
from dataclasses import replace

import numpy as np
import pytest

from lib.representations import architectures, tasks
from lib.representations.nets import Net
from tools.build import project

PAGE = "book/representations/universality.md"


@pytest.fixture(scope="module")
def jump():
    solution = project.read(project.ROOT / PAGE).split("{solution} ex-universality-share")[1]
    page = {"np": np, "replace": replace, "architectures": architectures, "tasks": tasks, "Net": Net, "SEED": 11}
    exec(re.search(r"```python\n(.*?)```", solution, re.DOTALL)[1], page)
    return page["jump"]


def test_no_share_of_rates_is_kept_in_a_jump_of_kinked_nets(jump):
    assert max(jump["tanh"][0]) < 1.3 and min(jump["default"][0]) > 2


def test_half_of_what_a_kinked_encoder_does_to_the_outputs_is_to_move_both_points_alike(jump):
    assert min(jump["default"][1]) > max(0.4, 3 * max(jump["tanh"][1]))
