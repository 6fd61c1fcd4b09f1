"""What lib.services.downloads reads from tiny files: good ones, damaged ones, hostile ones."""

import io
import os
import pickle
import struct

import numpy as np
import pytest
from download_data import (  # noqa: F401
    BATCHES,
    DIGITS,
    GOOD,
    LABELS,
    PHOTOGRAPHS,
    cifar_file,
    emnist_file,
    idx,
    no_network,
    npz,
    put,
    put_mnist,
    python2_pickle,
    python3_pickle,
    zipped,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.services import data, downloads
from lib.services.downloads import DataCorrupt


def test_mnist_reads_both_files(tmp_path):
    loaded = downloads.mnist("train", root=tmp_path, archives=put_mnist(tmp_path, idx(DIGITS), idx(LABELS)))
    assert np.array_equal(loaded.images, DIGITS) and loaded.images.dtype == np.float64
    assert np.array_equal(loaded.labels, LABELS) and loaded.labels.dtype == np.int64
    assert (loaded.classes, loaded.name) == (10, "mnist train")


def test_the_window_is_cut_as_lib_data_cuts_it(tmp_path):
    archives = put_mnist(tmp_path, idx(DIGITS), idx(LABELS))
    loaded = downloads.mnist("test", size=(4, 2), root=tmp_path, archives=archives)
    assert np.array_equal(loaded.images, data.crop(DIGITS, (4, 2)))
    assert np.array_equal(loaded.images, DIGITS[:, 1:5, 1:3])


@pytest.mark.parametrize("split", ["train", "test"])
def test_emnist_stands_upright_and_counts_letters_from_zero(tmp_path, split):
    archive = put(tmp_path, emnist_file(DIGITS, LABELS, split))
    loaded = downloads.emnist_letters(split, root=tmp_path, archive=archive)
    assert np.array_equal(loaded.images, DIGITS)
    assert loaded.labels.tolist() == [2, 0, 8, 0, 4] and loaded.classes == 26


@pytest.mark.parametrize("write", [python2_pickle, python3_pickle])
def test_cifar10_joins_the_batches_in_order(tmp_path, write):
    batches = [write((PHOTOGRAPHS + np.uint8(k)), [k, 9 - k, 0]) for k in range(6)]
    archive = put(tmp_path, cifar_file(batches))
    train = downloads.cifar10("train", grey=False, root=tmp_path, archive=archive)
    assert np.array_equal(train.images, np.concatenate([PHOTOGRAPHS + np.uint8(k) for k in range(5)]))
    assert train.labels.tolist() == [0, 9, 0, 1, 8, 0, 2, 7, 0, 3, 6, 0, 4, 5, 0]
    test = downloads.cifar10("test", root=tmp_path, archive=archive)
    red, green, blue = np.moveaxis((PHOTOGRAPHS + np.uint8(5)).astype(float), 3, 0)
    np.testing.assert_allclose(test.images, 0.299 * red + 0.587 * green + 0.114 * blue, rtol=1e-13)
    assert test.labels.tolist() == [5, 4, 0] and test.name == "cifar-10 test"


def test_the_python2_writer_makes_what_pickle_reads():
    written = python2_pickle(PHOTOGRAPHS, [1, 2, 3], name=b"numpy._core.multiarray\n_reconstruct\n")
    batch = pickle.loads(written, encoding="bytes")
    planes = batch[b"data"].reshape(3, 3, 32, 32)
    assert np.array_equal(planes.transpose(0, 2, 3, 1), PHOTOGRAPHS) and batch[b"labels"] == [1, 2, 3]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("count", [1, 3])
def test_cifar5m_reads_the_first_images(tmp_path, save, count):
    stream = io.BytesIO()
    save(stream, X=PHOTOGRAPHS, Y=np.array([7, 0, 9]))
    archive = put(tmp_path, stream.getvalue(), "part0.npz")
    colour = downloads.cifar5m(archive, count, grey=False, root=tmp_path)
    assert np.array_equal(colour.images, PHOTOGRAPHS[:count]) and colour.labels.tolist() == [7, 0, 9][:count]
    grey = downloads.cifar5m(archive, count, size=24, root=tmp_path)
    assert np.array_equal(grey.images, data.crop(data._grey(PHOTOGRAPHS[:count]), 24)) and grey.classes == 10


BAD_IDX = {
    "magic of one axis": (idx(DIGITS, magic=2049), idx(LABELS)),
    "magic of three axes": (idx(DIGITS), idx(LABELS, magic=2051)),
    "little-endian": (struct.pack("<4I", 2051, *DIGITS.shape) + DIGITS.tobytes(), idx(LABELS)),
    "one pixel short": (idx(DIGITS)[:-1], idx(LABELS)),
    "one byte long": (idx(DIGITS) + b"\0", idx(LABELS)),
    "count too large": (idx(DIGITS, shape=(6, 6, 4)), idx(LABELS)),
    "ends in the header": (idx(DIGITS)[:15], idx(LABELS)),
    "empty": (b"", idx(LABELS)),
    "one label short": (idx(DIGITS), idx(LABELS[:-1])),
    "label 10": (idx(DIGITS), idx(LABELS + np.uint8(1))),
    "no image": (idx(DIGITS[:0]), idx(LABELS[:0])),
}


@pytest.mark.parametrize("images, labels", BAD_IDX.values(), ids=BAD_IDX)
def test_a_bad_idx_file_is_refused(tmp_path, images, labels):
    with pytest.raises(DataCorrupt, match=r"^(images|labels)\.gz cannot be read"):
        downloads.mnist("train", root=tmp_path, archives=put_mnist(tmp_path, images, labels))


def test_idx_without_compression_is_refused(tmp_path):
    archives = put_mnist(tmp_path, idx(DIGITS), idx(LABELS), pack=lambda raw: raw)
    with pytest.raises(DataCorrupt, match="[Gg]zip"):
        downloads.mnist("train", root=tmp_path, archives=archives)


@pytest.mark.parametrize("labels", [LABELS - np.uint8(1), LABELS * 5], ids=["label 0", "label 45"])
def test_emnist_labels_run_from_1_to_26(tmp_path, labels):
    with pytest.raises(DataCorrupt, match="outside its 26 classes"):
        downloads.emnist_letters("train", root=tmp_path, archive=put(tmp_path, emnist_file(DIGITS, labels)))


BAD_BATCHES = {
    "no batch": b"",
    "type i2": python2_pickle(PHOTOGRAPHS, [0, 0, 0], kind=b"i2"),
    "objects": python2_pickle(PHOTOGRAPHS, [0, 0, 0], kind=b"O8"),
    "label 10": python2_pickle(PHOTOGRAPHS, [0, 0, 10]),
    "two labels": python2_pickle(PHOTOGRAPHS, [0, 0]),
    "floats": pickle.dumps({b"labels": [0, 0, 0], b"data": np.zeros((3, 3072))}, 4),
    "a list": pickle.dumps({b"labels": [0], b"data": [[0] * 3072]}, 4),
    "no dictionary": pickle.dumps([1, 2], 2),
    "short": python2_pickle(PHOTOGRAPHS, [0, 0, 0])[:-900],
}


@pytest.mark.parametrize("batch", BAD_BATCHES.values(), ids=BAD_BATCHES)
def test_a_bad_cifar_batch_is_refused(tmp_path, batch):
    archive = put(tmp_path, cifar_file([*BATCHES[:5], batch]))
    with pytest.raises(DataCorrupt, match="^file cannot be read"):
        downloads.cifar10("test", root=tmp_path, archive=archive)
    assert len(downloads.cifar10("train", root=tmp_path, archive=archive).images) == 15  # its other batches are sound


def test_a_missing_batch_is_refused(tmp_path):
    with pytest.raises(DataCorrupt, match="data_batch_5"):
        downloads.cifar10("train", root=tmp_path, archive=put(tmp_path, cifar_file(BATCHES[:4])))


SOUND = npz(X=PHOTOGRAPHS, Y=np.zeros(3, int))
START = SOUND.index(b"\x93NUMPY") + 8  # where the first member gives the length of its header
SHORT_HEADER = SOUND[:START] + bytes([SOUND[START] - 16]) + SOUND[START + 1 :]  # the pixels would start 16 bytes early

BAD_NPZ = {
    "no Y": npz(X=PHOTOGRAPHS),
    "floats": npz(X=PHOTOGRAPHS / 255, Y=np.zeros(3, int)),
    "planes first": npz(X=PHOTOGRAPHS.transpose(0, 3, 1, 2).copy(), Y=np.zeros(3, int)),
    "Fortran": npz(X=np.asfortranarray(PHOTOGRAPHS), Y=np.zeros(3, int)),
    "labels as columns": npz(X=PHOTOGRAPHS, Y=np.zeros((3, 10), int)),
    "two labels": npz(X=PHOTOGRAPHS, Y=np.zeros(2, int)),
    "label 10": npz(X=PHOTOGRAPHS, Y=np.full(3, 10)),
    "objects": npz(X=PHOTOGRAPHS, Y=np.array([1, 2, None])),
    "header too short": SHORT_HEADER,
    "short": zipped({"X.npy": npz(X=PHOTOGRAPHS)[:200], "Y.npy": b""}),
}


@pytest.mark.parametrize("content", BAD_NPZ.values(), ids=BAD_NPZ)
def test_a_bad_npz_is_refused(tmp_path, content):
    with pytest.raises(DataCorrupt, match="^file cannot be read"):
        downloads.cifar5m(put(tmp_path, content), 3, root=tmp_path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draws=st.data(), loader=st.sampled_from(list(GOOD)))
def test_a_truncated_file_never_gives_an_array(tmp_path, draws, loader):
    content, arguments = GOOD[loader]
    cut = draws.draw(st.integers(0, len(content) - 1))
    with pytest.raises(DataCorrupt):
        getattr(downloads, loader)(archive=put(tmp_path, content[:cut]), root=tmp_path, **arguments)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draws=st.data(), loader=st.sampled_from(list(GOOD)))
def test_a_changed_byte_gives_the_same_images_or_an_error(tmp_path, draws, loader):
    content, arguments = GOOD[loader]
    position, change = draws.draw(st.integers(0, len(content) - 1)), draws.draw(st.integers(1, 255))
    changed = bytearray(content)
    changed[position] ^= change
    load = getattr(downloads, loader)
    good = load(archive=put(tmp_path, content), root=tmp_path, **arguments)
    try:
        found = load(archive=put(tmp_path, bytes(changed)), root=tmp_path, **arguments)
    except DataCorrupt:
        return
    # It was a time or a name.
    assert np.array_equal(found.images, good.images) and np.array_equal(found.labels, good.labels)


class Hostile:
    """Pickles into a call of `function`."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


CALLS_HIDDEN = [
    *((os.system, "touch {}"), (os.mkdir, "{}")),
    *((eval, "__import__('os').mkdir('{}')"), (np.ndarray.tofile, DIGITS, "{}")),
]


@pytest.mark.parametrize("function, arguments", [(function, arguments) for function, *arguments in CALLS_HIDDEN])
def test_a_pickle_that_asks_for_a_program_runs_nothing(tmp_path, function, arguments):
    trace = tmp_path / "it-ran"
    hostile = Hostile(function, *[part.format(trace) if isinstance(part, str) else part for part in arguments])
    for content in (pickle.dumps(hostile, 2), pickle.dumps({b"labels": [0], b"data": hostile}, 4)):
        archive = put(tmp_path, cifar_file([*BATCHES[:5], content]))
        with pytest.raises(DataCorrupt, match="which no image needs"):
            downloads.cifar10("test", root=tmp_path, archive=archive)
    assert not trace.exists()
    pickle.loads(pickle.dumps(hostile, 4))
    assert trace.exists()  # the ordinary unpickler does run it: the test can fail


def test_a_pickle_cannot_build_an_array_over_memory(tmp_path):
    """NumPy's own constructor would take these bytes for an address."""
    forged = Hostile(np.ndarray, (1,), "O", b"12345678")
    for content in (pickle.dumps({b"labels": [0], b"data": forged}, 4), pickle.dumps(forged, 3)):
        with pytest.raises(DataCorrupt):
            downloads.cifar10("test", root=tmp_path, archive=put(tmp_path, cifar_file([*BATCHES[:5], content])))
