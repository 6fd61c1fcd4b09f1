"""lib.downloads on tiny files that the tests write: good ones, damaged ones, hostile ones, and a server on this machine."""

import gzip
import hashlib
import http.server
import io
import os
import pickle
import struct
import tarfile
import threading
import zipfile
from contextlib import contextmanager

import numpy as np
import pooch
import pytest
from bad_input import cases, refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib import data, downloads
from lib.downloads import Archive, DataCorrupt, DataUnavailable

RNG = np.random.default_rng(20240607)
DIGITS = RNG.integers(0, 256, (5, 6, 4), dtype=np.uint8)
PHOTOGRAPHS = RNG.integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
LABELS = np.array([3, 1, 9, 1, 5], dtype=np.uint8)


# --- writers of tiny files, from the descriptions of the formats -------------------------------------------------------------


def idx(array, *, magic=None, shape=None):
    shape = array.shape if shape is None else shape
    return struct.pack(f">{1 + len(shape)}I", magic or 0x800 + array.ndim, *shape) + array.tobytes()


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as bundle:
        for name, content in members.items():
            bundle.writestr(zipfile.ZipInfo(name), content, compression)  # ZipInfo: no time of day in the file
    return stream.getvalue()


def tarred(members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as bundle:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            bundle.addfile(info, io.BytesIO(content))
    return gzip.compress(stream.getvalue(), mtime=0)


def emnist_file(images, labels, split="train"):
    """As NIST packs it: in a folder, each part gzipped, every image transposed, labels from 1."""
    parts = {"images-idx3": idx(images.transpose(0, 2, 1).copy()), "labels-idx1": idx(labels)}
    return zipped({f"gzip/emnist-letters-{split}-{part}-ubyte.gz": gzip.compress(raw, mtime=0) for part, raw in parts.items()})


def python2_text(text):
    return b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + struct.pack("<i", len(text)) + text


def python2_pickle(photographs, labels, *, kind=b"u1", name=b"numpy.core.multiarray\n_reconstruct\n"):
    """A batch as Python 2 pickled it (protocol 2): text without encoding, NumPy's names of that time, planes R, G, B."""
    planes = photographs.transpose(0, 3, 1, 2).reshape(len(photographs), 3072)
    shape = b"J" + struct.pack("<i", len(planes)) + b"M" + struct.pack("<H", 3072) + b"\x86"
    dtype = b"cnumpy\ndtype\n" + python2_text(kind) + b"K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = b"c" + name + b"cnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01" + shape + dtype + b"\x89"
    array += python2_text(planes.tobytes()) + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + python2_text(b"labels") + numbers + python2_text(b"data") + array + b"u."


def python3_pickle(photographs, labels, protocol=4):
    planes = photographs.transpose(0, 3, 1, 2).reshape(len(photographs), 3072)
    return pickle.dumps({b"labels": [int(label) for label in labels], b"data": planes}, protocol)


def cifar_file(batches):
    """`batches`: six pickles, five to train on and the test batch."""
    names = [f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]
    return tarred({f"cifar-10-batches-py/{name}": content for name, content in zip(names, batches)})


def npz(**named):
    stream = io.BytesIO()
    np.savez(stream, **named)
    return stream.getvalue()


def put(folder, content, file="file", url=""):
    """Write `content` into `folder`; the Archive that describes it."""
    (folder / file).write_bytes(content)
    return Archive(file, hashlib.md5(content).hexdigest(), url)


def put_mnist(folder, images, labels, pack=lambda raw: gzip.compress(raw, mtime=0)):
    return put(folder, pack(images), "images.gz"), put(folder, pack(labels), "labels.gz")


BATCHES = [python2_pickle((PHOTOGRAPHS + np.uint8(k)), [k, 9 - k, 0]) for k in range(6)]
GOOD = {  # loader -> (bytes of its only file, arguments)
    downloads.emnist_letters: (emnist_file(DIGITS, LABELS), {"split": "train"}),
    downloads.cifar10: (cifar_file(BATCHES), {"split": "train"}),
    downloads.cifar5m: (npz(X=PHOTOGRAPHS, Y=np.array([7, 0, 9])), {"count": 3}),
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch, request):
    """Unless a test serves files itself, the way to the network ends in a failure that no loader catches."""
    monkeypatch.delenv(downloads.ENVIRONMENT, raising=False)
    if "serve" not in request.fixturenames:

        def refuse(*arguments, **_):
            pytest.fail(f"went to the network: {arguments}")

        monkeypatch.setattr(pooch, "retrieve", refuse)


# --- good files ------------------------------------------------------------------------------------------------------------


def test_mnist_reads_both_files(tmp_path):
    loaded = downloads.mnist("train", root=tmp_path, archives=put_mnist(tmp_path, idx(DIGITS), idx(LABELS)))
    assert np.array_equal(loaded.images, DIGITS) and loaded.images.dtype == np.float64
    assert np.array_equal(loaded.labels, LABELS) and loaded.labels.dtype == np.int64
    assert (loaded.classes, loaded.name) == (10, "mnist train")


def test_the_window_is_cut_as_lib_data_cuts_it(tmp_path):
    archives = put_mnist(tmp_path, idx(DIGITS), idx(LABELS))
    loaded = downloads.mnist("test", size=(4, 2), root=tmp_path, archives=archives)
    assert np.array_equal(loaded.images, data.crop(DIGITS, (4, 2))) and np.array_equal(loaded.images, DIGITS[:, 1:5, 1:3])


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
    batch = pickle.loads(python2_pickle(PHOTOGRAPHS, [1, 2, 3], name=b"numpy._core.multiarray\n_reconstruct\n"), encoding="bytes")
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
    assert np.array_equal(grey.images, data.crop(data.grey(PHOTOGRAPHS[:count]), 24)) and grey.classes == 10


# --- which folder ------------------------------------------------------------------------------------------------------------


def test_root_goes_before_the_environment_before_the_cache(tmp_path, monkeypatch):
    folders = [tmp_path / name for name in ("argument", "environment", "cache")]
    archive = Archive("file", "0" * 32)
    monkeypatch.setattr(pooch, "os_cache", lambda project: folders[2] / project)
    with pytest.raises(DataUnavailable, match=r"is not in .*cache/physics-of-learning\. "):
        downloads.emnist_letters("train", archive=archive)
    monkeypatch.setenv(downloads.ENVIRONMENT, str(folders[1]))
    with pytest.raises(DataUnavailable, match=r"is not in .*/environment\. "):
        downloads.emnist_letters("train", archive=archive)
    with pytest.raises(DataUnavailable, match=r"is not in .*/argument\. "):
        downloads.emnist_letters("train", archive=archive, root=folders[0])


def test_a_file_in_the_environments_folder_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv(downloads.ENVIRONMENT, str(tmp_path))
    content, arguments = GOOD[downloads.emnist_letters]
    assert len(downloads.emnist_letters(**arguments, archive=put(tmp_path, content)).images) == len(DIGITS)


# --- missing and wrong files -------------------------------------------------------------------------------------------------

REAL = {
    downloads.mnist: ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873", "mnist-5k"),
    downloads.emnist_letters: ("gzip.zip", "58c8d27c78d21e728a6bc7b3cc06412e", "mnist-5k"),
    downloads.cifar10: ("cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", "photo-patches"),
}


@pytest.mark.parametrize("loader", REAL)
def test_a_missing_file_is_named_with_all_that_helps(tmp_path, loader):
    file, md5, bundled = REAL[loader]
    with pytest.raises(FileNotFoundError) as caught:
        loader("train", root=tmp_path)
    message = str(caught.value)
    assert isinstance(caught.value, DataUnavailable)
    for part in (file, md5, str(tmp_path), "download=True", "https://", downloads.ENVIRONMENT, f'lib.data.load("{bundled}")'):
        assert part in message
    assert bundled in data.DEFAULT_SIZE and not any(tmp_path.iterdir())


def test_labels_alone_may_be_missing(tmp_path):
    archives = put_mnist(tmp_path, idx(DIGITS), idx(LABELS))
    (tmp_path / "labels.gz").unlink()
    with pytest.raises(DataUnavailable, match=r"^labels\.gz "):
        downloads.mnist("train", root=tmp_path, archives=archives)


def test_without_an_address_download_is_not_offered(tmp_path):
    with pytest.raises(DataUnavailable, match="no address is known") as caught:
        downloads.cifar5m(Archive("part0.npz", "0" * 32), 1, root=tmp_path, download=True)
    assert "download=True" not in str(caught.value)


def test_every_wrong_sum_names_both_sums_and_nothing_is_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "_parsing", lambda archive: pytest.fail("a file of the wrong sum reached a parser"))
    for loader, (content, arguments) in GOOD.items():
        wanted = put(tmp_path, content)
        found = put(tmp_path, content[:-1])
        with pytest.raises(DataCorrupt, match=f"{found.md5}.*{wanted.md5}"):
            loader(archive=wanted, root=tmp_path, **arguments)
    archives = put_mnist(tmp_path, idx(DIGITS), idx(LABELS))
    wrong = put(tmp_path, b"", "labels.gz")
    with pytest.raises(DataCorrupt, match=f"{wrong.md5}.*{archives[1].md5}"):
        downloads.mnist("train", root=tmp_path, archives=archives)


def test_a_wrong_file_is_not_overwritten_by_a_download(tmp_path):
    right = Archive("file", "0" * 32, "http://127.0.0.1/file")
    put(tmp_path, b"what someone put there", "file")
    with pytest.raises(DataCorrupt, match="Delete it"):
        downloads.emnist_letters("train", root=tmp_path, archive=right, download=True)
    assert (tmp_path / "file").read_bytes() == b"what someone put there"


# --- files that are what their sum says, and no images -------------------------------------------------------------------------

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
        loader(archive=put(tmp_path, content[:cut]), root=tmp_path, **arguments)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draws=st.data(), loader=st.sampled_from(list(GOOD)))
def test_a_changed_byte_gives_the_same_images_or_an_error(tmp_path, draws, loader):
    content, arguments = GOOD[loader]
    position, change = draws.draw(st.integers(0, len(content) - 1)), draws.draw(st.integers(1, 255))
    changed = bytearray(content)
    changed[position] ^= change
    good = loader(archive=put(tmp_path, content), root=tmp_path, **arguments)
    try:
        found = loader(archive=put(tmp_path, bytes(changed)), root=tmp_path, **arguments)
    except DataCorrupt:
        return
    assert np.array_equal(found.images, good.images) and np.array_equal(found.labels, good.labels)  # it was a time or a name


# --- hostile pickles -----------------------------------------------------------------------------------------------------------


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
    forged = Hostile(np.ndarray, (1,), "O", b"12345678")  # NumPy's own constructor would take these bytes for an address
    for content in (pickle.dumps({b"labels": [0], b"data": forged}, 4), pickle.dumps(forged, 3)):
        with pytest.raises(DataCorrupt):
            downloads.cifar10("test", root=tmp_path, archive=put(tmp_path, cifar_file([*BATCHES[:5], content])))


# --- downloads, from a server on this machine ----------------------------------------------------------------------------------


@pytest.fixture
def serve(monkeypatch):
    """serve(replies): a server on 127.0.0.1 for the duration of a with block; it yields its address and the paths asked for.

    `replies` maps paths to (bytes sent, length promised).
    """
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    @contextmanager
    def run(replies):
        asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                if self.path not in replies:
                    return self.send_error(404)
                content, promised = replies[self.path]
                self.send_response(200)
                self.send_header("Content-Length", str(promised))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                """Keep the test's output for the test."""

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            yield f"http://127.0.0.1:{server.server_port}", asked
            server.shutdown()
            thread.join()

    return run


def test_a_download_is_asked_for_verified_kept_and_not_repeated(tmp_path, serve):
    content, arguments = GOOD[downloads.emnist_letters]
    md5, folder = hashlib.md5(content).hexdigest(), tmp_path / "made on demand"
    with serve({"/letters.zip": (content, len(content))}) as (address, asked):
        archive = Archive("kept.zip", md5, f"{address}/letters.zip")
        with pytest.raises(DataUnavailable):
            downloads.emnist_letters(**arguments, root=folder, archive=archive)
        assert asked == [] and not folder.exists()
        for _ in range(2):
            loaded = downloads.emnist_letters(**arguments, root=folder, archive=archive, download=True)
            assert np.array_equal(loaded.images, DIGITS)
        assert asked == ["/letters.zip"] and [path.name for path in folder.iterdir()] == ["kept.zip"]
    offline = downloads.emnist_letters(**arguments, root=folder, archive=archive)
    assert np.array_equal(offline.images, DIGITS)


@pytest.mark.parametrize("fault", ["cut off", "cut off unnoticed", "changed"])
def test_a_bad_download_leaves_nothing_that_is_read_later(tmp_path, serve, fault):
    content, arguments = GOOD[downloads.emnist_letters]
    half = len(content) // 2
    sent = {"cut off": content[:half], "cut off unnoticed": content[:half], "changed": content[:-1] + b"?"}[fault]
    promised = len(content) if fault == "cut off" else len(sent)
    expected = DataUnavailable if fault == "cut off" else DataCorrupt
    with serve({"/file": (sent, promised)}) as (address, _):
        archive = Archive("file", hashlib.md5(content).hexdigest(), f"{address}/file")
        with pytest.raises(expected) as caught:
            downloads.emnist_letters(**arguments, root=tmp_path, archive=archive, download=True)
        assert archive.md5 in str(caught.value)
        if expected is DataCorrupt:
            assert hashlib.md5(sent).hexdigest() in str(caught.value)
    assert not any(tmp_path.iterdir())
    with pytest.raises(DataUnavailable):
        downloads.emnist_letters(**arguments, root=tmp_path, archive=archive)


def test_a_download_killed_half_way_is_never_read(tmp_path):
    content, arguments = GOOD[downloads.emnist_letters]
    archive = put(tmp_path, content)
    (tmp_path / "file").unlink()
    (tmp_path / "tmp8f3k2").write_bytes(content[:99])  # what pooch leaves if the machine stops: a name that no loader looks for
    with pytest.raises(DataUnavailable):
        downloads.emnist_letters(**arguments, root=tmp_path, archive=archive)
    (tmp_path / "tmp8f3k2").rename(tmp_path / "file")  # what a copy or another tool leaves
    with pytest.raises(DataCorrupt):
        downloads.emnist_letters(**arguments, root=tmp_path, archive=archive)


@pytest.mark.parametrize("gone", ["page", "server"])
def test_no_server_or_no_page_says_what_to_do(tmp_path, serve, gone):
    with serve({}) as (address, _):
        archive = Archive("file", "0" * 32, f"{address}/file")
        if gone == "page":
            with pytest.raises(DataUnavailable, match="could not be downloaded .*404.*fetch it from") as caught:
                downloads.emnist_letters("train", root=tmp_path, archive=archive, download=True)
    if gone == "server":
        with pytest.raises(DataUnavailable, match="could not be downloaded .*fetch it from") as caught:
            downloads.emnist_letters("train", root=tmp_path, archive=archive, download=True)
    assert caught.value.__cause__ is not None and not any(tmp_path.iterdir())


# --- bad input -----------------------------------------------------------------------------------------------------------------

ARCHIVE = Archive("file", "0" * 32)
COMMON = {"size": 20, "root": "no such folder", "download": False}
CALLS = {
    downloads.mnist: {"split": "train", "archives": (ARCHIVE, ARCHIVE), **COMMON},
    downloads.emnist_letters: {"split": "train", "archive": ARCHIVE, **COMMON},
    downloads.cifar10: {"split": "train", "grey": True, "archive": ARCHIVE, **COMMON},
    downloads.cifar5m: {"archive": ARCHIVE, "count": 1, "grey": True, **COMMON},
}
BAD = {
    "split": ["training", "", None, 0, ["train"]],
    "archives": [ARCHIVE, (), (ARCHIVE,), (ARCHIVE, "file"), "ab", 3],
    "archive": ["file", None, (ARCHIVE,), {"file": "file"}],
    "size": [0, -1, 2.0, "2", True, (2,), (2, 0)],
    "root": ["", 3, b"folder", ["folder"]],
    "download": [1, 0, "yes", None],
    "grey": [1, "no", None],
    "count": [0, -1, 1.5, "1", None, True],
}


@pytest.mark.parametrize("function, name, value", cases(CALLS, BAD))
def test_bad_input_is_refused_by_name(function, name, value):
    refused(CALLS[function], function, name, value)


@pytest.mark.parametrize("loader", GOOD)
def test_a_window_or_count_beyond_the_images_is_refused(tmp_path, loader):
    content, arguments = GOOD[loader]
    call = {**arguments, "archive": put(tmp_path, content), "root": tmp_path}
    refused(call, loader, "size", 33)
    if "count" in call:
        refused(call, loader, "count", 4)


@pytest.mark.parametrize(
    "name, value",
    [
        *[("file", bad) for bad in ("", "..", "../file", "a/b", "a\\b", "/file", "a\0b", None)],
        *[("md5", bad) for bad in ("", "0" * 31, "g" * 32, "A" * 32, None)],
        *[("url", bad) for bad in ("ftp://host/file", "file:///etc/passwd", "host/file", None)],
    ],
)
def test_an_archive_names_one_file_one_sum_and_one_address(name, value):
    refused({"file": "file", "md5": "0" * 32, "url": "https://host/file"}, Archive, name, value)


def test_every_real_archive_has_a_secure_address():
    for archive in (*downloads.MNIST["train"], *downloads.MNIST["test"], downloads.EMNIST, downloads.CIFAR10):
        assert archive.url == f"{archive.url.rpartition('/')[0]}/{archive.file}" and archive.url.startswith("https://")
