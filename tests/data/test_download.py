"""data/download.py, on archives made here: nothing is lost, every failure is one clear line, a rerun finishes."""

import dataclasses
import gzip
import hashlib
import importlib.util
import io
import os
import re
import signal
import subprocess
import sys
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from torchtext import data, datasets

SCRIPT = Path(__file__).parents[2] / "data" / "download.py"
spec = importlib.util.spec_from_file_location("download", SCRIPT)
download = importlib.util.module_from_spec(spec)
spec.loader.exec_module(download)

REVIEWS = {
    f"aclImdb/{split}/{label}/{i}_{rating}.txt": f"review {split} {label} {i} " + "word " * 50
    for split in ("train", "test")
    for label, rating in (("pos", 9), ("neg", 2))
    for i in range(40)
}
UNLABELLED = {f"aclImdb/train/unsup/{i}_0.txt": f"unlabelled {i} " + "word " * 50 for i in range(40)}
SENTENCES = {
    f"{split}.{language}": f"{split} {language}\n" * lines
    for split, lines in (("train", 30), ("val", 4), ("test_2016_flickr", 3))
    for language in ("de", "en")
}


def tar_of(files: dict[str, str]) -> bytes:
    """A .tar.gz of the files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def digest_of(files: dict[str, str]) -> str:
    """The content digest that `verify` should find for the files."""
    total = b"".join(f"{name}\0{len(text)}\0{text}".encode() for name, text in sorted(files.items()))
    return hashlib.sha256(total).hexdigest()


EXTRA = {
    "aclImdb/README": "hello",
    "aclImdb/train/unsup/cleaning.py": "print",
    "aclImdb/train/../../../evil_1.txt": "x",
    "aclImdb/train/unsup/../../../../evil_2.txt": "x",
}
ARCHIVES = {
    "aclImdb_v1.tar.gz": tar_of(REVIEWS | UNLABELLED | EXTRA),
    "aclImdb_v1_labelled.tar.gz": tar_of(REVIEWS),
    "aclImdb_v1_unlabelled.tar.gz": tar_of(UNLABELLED | EXTRA),
    **{f"{name}.gz": gzip.compress(text.encode()) for name, text in SENTENCES.items()},
}
LLAMA = {"stories260K.bin": "seven integers and tables\n" * 20, "tok512.bin": "512 pieces"}
ARCHIVES |= {name: text.encode() for name, text in LLAMA.items()}
TREES = {
    "imdb": REVIEWS,
    "imdb/aclImdb/train/unsup": {Path(name).name: text for name, text in UNLABELLED.items()},
    "multi30k": {name.replace("_2016_flickr", "2016"): text for name, text in SENTENCES.items()},
    "tinyllamas": LLAMA,
}


class Server(ThreadingHTTPServer):
    """Serves ARCHIVES with Range, misbehaving as told; remembers the ranges asked for."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = dict(ARCHIVES)
        self.asked: list[str] = []
        self.cut = 0  # close each connection after so many bytes of the body
        self.status = 200
        self.ranges = True
        self.content_type = "application/gzip"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server, body = self.server, self.server.files[self.path.strip("/")]
        server.asked.append(self.headers["Range"])
        start = int(re.fullmatch(r"bytes=(\d+)-", self.headers["Range"])[1]) if server.ranges else 0
        status = server.status if server.status != 200 or not server.ranges else 206
        if start >= len(body):
            status, start = 416, len(body)
        self.send_response(status)
        self.send_header("Content-Type", server.content_type)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start : start + server.cut] if server.cut else body[start:])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    server = Server()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def full(tmp_path, monkeypatch):
    """The script, pointed at the small archives and at an empty folder, without network."""

    def small(dataset):
        parts = tuple(
            tuple(
                dataclasses.replace(
                    a, sha256=hashlib.sha256(ARCHIVES[a.name]).hexdigest(), url=a.url and "http://0.0.0.0:9/"
                )
                for a in part
            )
            for part in dataset.parts
        )
        files = TREES[dataset.name]
        return dataclasses.replace(dataset, parts=parts, files=len(files), digest=digest_of(files))

    monkeypatch.setattr(download, "DATASETS", tuple(small(dataset) for dataset in download.DATASETS))
    monkeypatch.setattr(download, "FULL", tmp_path / "full")
    monkeypatch.setattr(download, "PAUSE", 0.0)
    monkeypatch.setattr(download, "CHUNK", 100)
    return tmp_path / "full"


@pytest.fixture
def public(full, server, monkeypatch):
    """As `full`, with the server as the public source."""

    def served(dataset):
        parts = tuple(
            tuple(dataclasses.replace(a, url=a.url and server.url + a.name) for a in part) for part in dataset.parts
        )
        return dataclasses.replace(dataset, parts=parts)

    monkeypatch.setattr(download, "DATASETS", tuple(served(dataset) for dataset in download.DATASETS))
    return full


@pytest.fixture
def source(tmp_path):
    """A folder with every archive, IMDB's in a subfolder."""
    folder = tmp_path / "source"
    (folder / "imdb").mkdir(parents=True)
    for name, content in ARCHIVES.items():
        (folder / ("imdb" if name.startswith("acl") else ".") / name).write_bytes(content)
    return folder


def snapshot(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_complete(full: Path) -> None:
    """All data sets are there, as torchtext reads them, the Llama byte for byte, and nothing unfinished is."""
    text, label, german, english = data.Field(), data.Field(sequential=False), data.Field(), data.Field()
    train, test = datasets.IMDB.splits(text, label, root=str(full))
    assert len(train) == len(test) == 80
    assert {example.label for example in test} == {"pos", "neg"}
    splits = datasets.Multi30k.splits((".de", ".en"), (german, english), root=str(full))
    assert [len(split) for split in splits] == [30, 4, 3]
    assert splits[2][0].src == ["test_2016_flickr", "de"]
    assert {path.name for path in full.iterdir()} <= {"imdb", "multi30k", "tinyllamas", "downloads"}
    assert {path.name: path.read_text() for path in (full / "tinyllamas").iterdir()} == LLAMA
    files = {path.relative_to(full).as_posix() for path in (full / "imdb").rglob("*") if path.is_file()}
    assert files == {f"imdb/{name}" for name in REVIEWS | UNLABELLED}


def error_lines(capsys) -> list[str]:
    lines = capsys.readouterr().err.strip().splitlines()
    assert all(line.startswith("error: ") for line in lines)
    return lines


@pytest.mark.parametrize(
    "missing", [["aclImdb_v1.tar.gz"], ["aclImdb_v1_labelled.tar.gz", "aclImdb_v1_unlabelled.tar.gz"]]
)
def test_from_folder_takes_either_imdb_archive(full, source, missing):
    for name in missing:
        (source / "imdb" / name).unlink()
    before = snapshot(source)
    assert download.main(["--from", str(source)]) == 0
    assert_complete(full)
    assert snapshot(source) == before


def test_second_run_only_checks(full, source, capsys):
    download.main(["--from", str(source)])
    assert download.main([]) == 0  # no archive, no network: nothing is needed
    assert "complete" in capsys.readouterr().out


def only_the_whole_archive(source: Path) -> None:
    """Leave no archive of a part of IMDB."""
    for part in ("labelled", "unlabelled"):
        (source / "imdb" / f"aclImdb_v1_{part}.tar.gz").unlink()


def test_members_outside_the_tree_are_not_unpacked(full, source):
    only_the_whole_archive(source)
    download.main(["--from", str(source)])
    assert not list(full.parent.rglob("evil*"))


@pytest.mark.parametrize("damage", ["corrupt", "truncated", "empty", "missing", "half-downloaded"])
@pytest.mark.parametrize("name", ["aclImdb_v1.tar.gz", "val.en.gz", "stories260K.bin"])
def test_bad_archive_in_folder(full, source, capsys, name, damage):
    only_the_whole_archive(source)
    path = next(source.rglob(name))
    good = path.read_bytes()
    if damage == "corrupt":
        path.write_bytes(good[:20] + bytes([good[20] ^ 1]) + good[21:])
    elif damage == "truncated":
        path.write_bytes(good[: len(good) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
        if damage == "half-downloaded":
            Path(f"{path}.part").write_bytes(good[:100])
    before = snapshot(source)

    assert download.main(["--from", str(source)]) == 1
    (line,) = error_lines(capsys)
    assert name in line and "run this again" in line
    assert snapshot(source) == before
    broken = {"acl": "imdb", "val": "multi30k", "sto": "tinyllamas"}[name[:3]]
    whole = "imdb" if broken == "multi30k" else "multi30k"
    assert not (full / broken).exists() and (full / whole).exists()

    path.write_bytes(good)
    assert download.main(["--from", str(source)]) == 0
    assert_complete(full)


@pytest.mark.parametrize("damage", ["truncated", "missing"])
def test_unlabelled_reviews_that_cannot_be_had(full, source, capsys, damage):
    """The labelled ones are there all the same, and the unlabelled ones come with the next run."""
    download.main(["--from", str(source)])
    unlabelled = full / "imdb" / "aclImdb" / "train" / "unsup"
    unlabelled.rename(full.parent / "away")
    (source / "imdb" / "aclImdb_v1.tar.gz").unlink()
    path = source / "imdb" / "aclImdb_v1_unlabelled.tar.gz"
    path.write_bytes(ARCHIVES[path.name][:100])
    if damage == "missing":
        path.unlink()
    labelled = snapshot(full)
    capsys.readouterr()
    assert download.main(["--from", str(source)]) == 1
    (line,) = error_lines(capsys)
    assert "unsup" in line and path.name in line and "run this again" in line
    assert snapshot(full) == labelled and not unlabelled.exists()

    path.write_bytes(ARCHIVES[path.name])
    assert download.main(["--from", str(source)]) == 0
    assert_complete(full)


def test_damaged_public_archive_beside_a_good_labelled_one(full, source):
    (source / "imdb" / "aclImdb_v1.tar.gz").write_bytes(b"half")
    assert download.main(["--from", str(source)]) == 0
    assert_complete(full)


def test_folder_that_is_not_there(full, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        download.main(["--from", str(tmp_path / "nowhere")])
    assert stop.value.code == 2
    assert "is not a folder" in capsys.readouterr().err


def test_interrupted_unpacking(full, source, monkeypatch, capsys):
    """Stopped in the middle: no half-filled folder under the name that torchtext trusts; the next run finishes."""
    written = Path.write_bytes

    def stop_at_tenth(path, content):
        if path.name == "10_9.txt":
            raise KeyboardInterrupt
        return written(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", stop_at_tenth)
        assert download.main(["--from", str(source)]) == 130
    assert "same command again" in capsys.readouterr().err
    assert not (full / "imdb").exists() and (full / "imdb.part").exists()
    assert download.main(["--from", str(source)]) == 0
    assert_complete(full)


def test_full_disk(full, source, monkeypatch, capsys):
    def no_space(path, content):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", no_space)
        assert download.main(["--from", str(source)]) == 1
    (line,) = error_lines(capsys)
    assert "No space left" in line
    assert download.main(["--from", str(source)]) == 0
    assert_complete(full)


@pytest.mark.parametrize("change", ["altered", "removed", "added"])
def test_altered_tree_is_reported_and_left_alone(full, source, capsys, change):
    download.main(["--from", str(source)])
    folder = full / "imdb" / "aclImdb" / "train" / "pos"
    if change == "altered":
        (folder / "3_9.txt").write_text("shorter")
    elif change == "removed":
        (folder / "3_9.txt").unlink()
    else:
        (folder / "99_9.txt").write_text("one more")
    capsys.readouterr()
    before = snapshot(full)
    assert download.main(["--from", str(source)]) == 1
    (line,) = error_lines(capsys)
    assert "move it away" in line
    assert snapshot(full) == before
    (full / "imdb").rename(full.parent / "away")
    assert download.main(["--from", str(source)]) == 0
    assert_complete(full)


def test_download(public, server):
    assert download.main([]) == 0
    assert_complete(public)
    assert len(server.asked) == 9 and set(server.asked) == {"bytes=0-"}


def test_download_resumes(public, server):
    half = len(ARCHIVES["aclImdb_v1.tar.gz"]) // 2
    (public / "downloads").mkdir(parents=True)
    (public / "downloads" / "aclImdb_v1.tar.gz.part").write_bytes(ARCHIVES["aclImdb_v1.tar.gz"][:half])
    assert download.main([]) == 0
    assert_complete(public)
    assert f"bytes={half}-" in server.asked


def test_download_that_was_complete_but_not_yet_renamed(public):
    (public / "downloads").mkdir(parents=True)
    (public / "downloads" / "aclImdb_v1.tar.gz.part").write_bytes(ARCHIVES["aclImdb_v1.tar.gz"])
    assert download.main([]) == 0
    assert_complete(public)


def test_dropped_connections_are_resumed(public, server):
    server.cut = 700
    assert download.main([]) == 0
    assert_complete(public)
    assert "bytes=700-" in server.asked and "bytes=1400-" in server.asked


def test_server_without_ranges(public, server):
    server.ranges = False
    (public / "downloads").mkdir(parents=True)
    (public / "downloads" / "train.de.gz.part").write_bytes(ARCHIVES["train.de.gz"][:20])
    assert download.main([]) == 0
    assert_complete(public)


def test_corrupt_download_is_kept_aside_and_a_rerun_finishes(public, server, capsys):
    good = server.files["aclImdb_v1.tar.gz"]
    server.files["aclImdb_v1.tar.gz"] = bad = good[:-1] + b"?"
    assert download.main([]) == 1
    (line,) = error_lines(capsys)
    assert "SHA-256" in line and "run this again" in line
    (kept,) = (public / "downloads").glob("*.bad-*")
    assert kept.read_bytes() == bad
    server.files["aclImdb_v1.tar.gz"] = good
    assert download.main([]) == 0
    assert_complete(public)
    assert kept.read_bytes() == bad


def test_archive_that_rotted_in_the_downloads_folder(public):
    (public / "downloads").mkdir(parents=True)
    (public / "downloads" / "val.de.gz").write_bytes(b"rotten")
    assert download.main([]) == 0
    assert_complete(public)
    assert [p.read_bytes() for p in (public / "downloads").glob("*.bad-*")] == [b"rotten"]


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [("status", 404, "404"), ("status", 503, "503"), ("content_type", "text/html; charset=utf-8", "web page")],
)
def test_server_that_refuses(public, server, capsys, attribute, value, words):
    (public / "downloads").mkdir(parents=True)
    (public / "downloads" / "train.de.gz.part").write_bytes(ARCHIVES["train.de.gz"][:20])
    setattr(server, attribute, value)
    assert download.main([]) == 1
    lines = error_lines(capsys)
    assert len(lines) == 3 and all(words in line for line in lines)
    assert (public / "downloads" / "train.de.gz.part").read_bytes() == ARCHIVES["train.de.gz"][:20]
    setattr(server, attribute, getattr(Server(), attribute))
    assert download.main([]) == 0
    assert_complete(public)


def test_no_network(full, capsys):
    assert download.main([]) == 1
    lines = error_lines(capsys)
    assert len(lines) == 3 and all("--from DIR" in line for line in lines)


def test_killed_in_the_middle(public, server, tmp_path):
    """A process that is killed while it downloads leaves its bytes, and the next one asks only for the rest."""
    server.files["aclImdb_v1.tar.gz"] = body = os.urandom(1 << 21)
    child = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('download', sys.argv[1])\n"
        "m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m)\n"
        "real = m.Progress.advance\n"
        "m.Progress.advance = lambda *a: (real(*a), print(flush=True), m.time.sleep(0.02))\n"
        "with m.Progress() as p: m.fetch(sys.argv[2], m.Path(sys.argv[3]), p)\n"
    )
    part = tmp_path / "x.part"
    url = server.url + "aclImdb_v1.tar.gz"
    process = subprocess.Popen([sys.executable, "-c", child, SCRIPT, url, part], stdout=subprocess.DEVNULL)
    while not part.exists() or not part.stat().st_size:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    had = part.stat().st_size
    assert 0 < had < len(body)
    with download.Progress() as progress:
        download.fetch(url, part, progress)
    assert server.asked[-1] == f"bytes={had}-"
    assert part.read_bytes() == body


@pytest.mark.skipif(not (download.FULL / "multi30k").is_dir(), reason="the full data have not been downloaded")
def test_real_tree(monkeypatch):
    """Where the full Multi30k is, its content is the one that the script states."""
    monkeypatch.setattr(download, "DATASETS", download.DATASETS[:1])  # IMDB's 50,000 files take seconds
    assert download.main([]) == 0
