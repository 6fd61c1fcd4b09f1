"""lib.services.downloads: where it looks, what it says of missing and wrong files, downloads from a local server."""

import gzip
import hashlib
import http.server
import io
import threading
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pooch
import pytest
from download_data import DIGITS, GOOD, LABELS, idx, no_network, npz, put, put_mnist  # noqa: F401
from matplotlib.image import imsave

from lib.services import data, downloads
from lib.services.downloads import Archive, DataCorrupt, DataUnavailable


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


def test_a_home_folder_that_does_not_exist_is_named(monkeypatch):
    monkeypatch.setenv(downloads.ENVIRONMENT, "~nouser/x")
    with pytest.raises(ValueError, match=f"^{downloads.ENVIRONMENT} must be the path of a folder whose ~"):
        downloads.mnist("train")


def test_a_file_in_the_environments_folder_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv(downloads.ENVIRONMENT, str(tmp_path))
    content, arguments = GOOD["emnist_letters"]
    assert len(downloads.emnist_letters(**arguments, archive=put(tmp_path, content)).images) == len(DIGITS)


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
    ways = ("download=True", "https://", downloads.ENVIRONMENT, f'lib.services.data.load("{bundled}")')
    assert [part for part in (file, md5, str(tmp_path), *ways) if part not in message] == []
    assert bundled in data.DEFAULT_SIZE and not any(tmp_path.iterdir())


def test_without_an_address_download_is_not_offered(tmp_path):
    with pytest.raises(DataUnavailable, match="no address is known") as caught:
        downloads.cifar5m(Archive("part0.npz", "0" * 32), 1, root=tmp_path, download=True)
    assert "download=True" not in str(caught.value)


def test_every_wrong_sum_names_both_sums_and_nothing_is_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "parsing", lambda archive: pytest.fail("a file of the wrong sum reached a parser"))
    for loader, (content, arguments) in GOOD.items():
        wanted = put(tmp_path, content)
        found = put(tmp_path, content[:-1])
        with pytest.raises(DataCorrupt, match=f"{found.md5}.*{wanted.md5}"):
            getattr(downloads, loader)(archive=wanted, root=tmp_path, **arguments)
    archives = put_mnist(tmp_path, idx(DIGITS), idx(LABELS))
    wrong = put(tmp_path, b"", "labels.gz")
    with pytest.raises(DataCorrupt, match=f"{wrong.md5}.*{archives[1].md5}"):
        downloads.mnist("train", root=tmp_path, archives=archives)
    (tmp_path / "labels.gz").unlink()
    with pytest.raises(DataUnavailable, match=r"^labels\.gz "):
        downloads.mnist("train", root=tmp_path, archives=archives)


def test_any_compression_of_the_right_bytes_will_do_and_of_no_others(tmp_path):
    right = idx(DIGITS)
    images = put(tmp_path, gzip.compress(right, 1, mtime=5), "images.gz")
    labels = put(tmp_path, gzip.compress(idx(LABELS)), "labels.gz")
    known = replace(images, md5="0" * 32, unpacked=hashlib.md5(right).hexdigest())
    loaded = downloads.mnist("train", root=tmp_path, archives=(known, labels))
    assert np.array_equal(loaded.images, DIGITS)
    for unpacked in ("", "1" * 32):
        with pytest.raises(DataCorrupt, match=f"{images.md5}.*{known.md5}"):
            downloads.mnist("train", root=tmp_path, archives=(replace(known, unpacked=unpacked), labels))
    (tmp_path / "images.gz").write_bytes(gzip.compress(right)[:-9])
    with pytest.raises(DataCorrupt, match="images.gz"):
        downloads.mnist("train", root=tmp_path, archives=(known, labels))


def test_a_wrong_file_is_not_overwritten_by_a_download(tmp_path):
    right = Archive("file", "0" * 32, "http://127.0.0.1/file")
    put(tmp_path, b"what someone put there", "file")
    with pytest.raises(DataCorrupt, match="Delete it"):
        downloads.emnist_letters("train", root=tmp_path, archive=right, download=True)
    assert (tmp_path / "file").read_bytes() == b"what someone put there"


def jpeg_set(pictures, labels):
    """As an npz file: JPEG files one after the other, where each starts, and the labels."""
    files = []
    for picture in pictures:
        stream = io.BytesIO()
        imsave(stream, picture, format="jpeg", pil_kwargs={"quality": 100, "subsampling": 0})
        files.append(stream.getvalue())
    offsets = np.cumsum([0, *map(len, files)])
    return npz(jpeg=np.frombuffer(b"".join(files), np.uint8), offsets=offsets, labels=np.uint8(labels))


def test_a_jpeg_copy_is_the_pictures_nearly(tmp_path):
    smooth = np.add.outer(4 * np.arange(32), 3 * np.arange(32))[None, ..., None] + [0, 9, 20]  # (1, 32, 32, 3)
    pictures = np.uint8(np.concatenate([smooth, 255 - smooth]))
    archive = put(tmp_path, jpeg_set(pictures, [4, 9]))
    colour = downloads.cifar10_jpeg(grey=False, root=tmp_path, archive=archive)
    assert np.abs(colour.images - pictures).max() < 8 and colour.labels.tolist() == [4, 9]
    grey = downloads.cifar10_jpeg(root=tmp_path, archive=archive)
    np.testing.assert_allclose(grey.images, data._grey(colour.images))
    for wrong in (jpeg_set(pictures[:, :16], [4, 9]), jpeg_set(pictures, [4, 10]), b"no npz"):
        with pytest.raises(DataCorrupt, match="file cannot be read"):
            downloads.cifar10_jpeg(root=tmp_path, archive=put(tmp_path, wrong))


@pytest.fixture
def serve(monkeypatch):
    """serve(replies): a server on 127.0.0.1 inside a with block; it yields its address and the paths asked for.

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
    content, arguments = GOOD["emnist_letters"]
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
    content, arguments = GOOD["emnist_letters"]
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
    content, arguments = GOOD["emnist_letters"]
    archive = put(tmp_path, content)
    (tmp_path / "file").unlink()
    (tmp_path / "tmp8f3k2").write_bytes(content[:99])  # what pooch leaves if the machine stops
    with pytest.raises(DataUnavailable):
        downloads.emnist_letters(**arguments, root=tmp_path, archive=archive)


def test_no_server_or_no_page_says_what_to_do(tmp_path, serve):
    with serve({}) as (address, _):
        archive = Archive("file", "0" * 32, f"{address}/file")
        with pytest.raises(DataUnavailable, match="could not be downloaded .*404.*fetch it from"):
            downloads.emnist_letters("train", root=tmp_path, archive=archive, download=True)
    with pytest.raises(DataUnavailable, match="could not be downloaded .*fetch it from") as caught:
        downloads.emnist_letters("train", root=tmp_path, archive=archive, download=True)
    assert caught.value.__cause__ is not None and not any(tmp_path.iterdir())


ARCHIVE = Archive("file", "0" * 32)
BAD = {
    "split": ["training", None, ["train"]],
    "archives": [ARCHIVE, (ARCHIVE,), (ARCHIVE, "file"), "ab"],
    "archive": ["file", None, (ARCHIVE,)],
    "size": [0, 2.0, "2", True, (2,), (2, 0)],
    "root": ["", 3, b"folder"],
    "download": [1, "yes", None],
    "grey": [1, "no", None],
    "count": [0, 1.5, None, True],
}


@pytest.mark.parametrize(
    ("loader", "arguments"),
    [
        (downloads.mnist, {"split": "train", "archives": (ARCHIVE, ARCHIVE)}),
        (downloads.emnist_letters, {"split": "train", "archive": ARCHIVE}),
        (downloads.cifar10, {"split": "train", "grey": True, "archive": ARCHIVE}),
        (downloads.cifar5m, {"archive": ARCHIVE, "count": 1, "grey": True}),
    ],
)
def test_arguments_are_checked_before_any_file_is_looked_for(loader, arguments):
    good = arguments | {"size": 20, "root": "no such folder", "download": False}
    for name, wrong in [(name, wrong) for name, values in BAD.items() if name in good for wrong in values]:
        with pytest.raises(ValueError, match=f"^{name} must "):
            loader(**good | {name: wrong})


@pytest.mark.parametrize("loader", GOOD)
def test_a_window_or_count_beyond_the_images_is_refused(tmp_path, loader):
    content, arguments = GOOD[loader]
    call = {**arguments, "archive": put(tmp_path, content), "root": tmp_path}
    for name, wrong in {"size": 33, "count": 4}.items():
        if name == "size" or name in call:
            with pytest.raises(ValueError, match=f"^{name} must be at most"):
                getattr(downloads, loader)(**call | {name: wrong})


@pytest.mark.parametrize(
    "name, value",
    [
        *[("file", bad) for bad in ("", "..", "../file", "a/b", "a\\b", "/file", "a\0b", None)],
        *[("md5", bad) for bad in ("", "0" * 31, "g" * 32, "A" * 32, None)],
        *[("url", bad) for bad in ("ftp://host/file", "file:///etc/passwd", "host/file", None)],
        ("unpacked", "x"),
    ],
)
def test_an_archive_names_one_file_one_sum_and_one_address(name, value):
    with pytest.raises(ValueError, match=f"^{name} must"):
        Archive(**{"file": "file", "md5": "0" * 32, "url": "https://host/file"} | {name: value})


def test_every_real_archive_has_a_secure_address():
    for archive in (*downloads.MNIST["train"], *downloads.MNIST["test"], downloads.EMNIST, downloads.CIFAR10):
        assert archive.url == f"{archive.url.rpartition('/')[0]}/{archive.file}" and archive.url.startswith("https://")
