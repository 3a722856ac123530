"""Put the full data sets, and a small published model, into data/full/, where the chapters find them.

    python data/download.py               from the public sources
    python data/download.py --from DIR    from archives that are already in DIR

Nothing is ever deleted, a run that was stopped is continued by running the same command again, and a data set
appears under its name only when its content has been checked. What is fetched, and why, is in data/README.md.
"""

import argparse
import gzip
import hashlib
import os
import re
import shutil
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import requests
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

FULL = Path(__file__).resolve().parent / "full"
CHUNK = 1 << 14  # what a broken connection can lose
TRIES = 3  # in a row without a single new byte
PAUSE = 2.0  # seconds between two tries

# A commit, not a branch: these bytes cannot change under the checksums.
MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/"
LABELLED = re.compile(r"(?P<file>aclImdb/(train|test)/(pos|neg)/\d+_\d+\.txt)")
UNLABELLED = re.compile(r"aclImdb/train/unsup/(?P<file>\d+_\d+\.txt)")


class DataError(Exception):
    """What went wrong and what to do about it, in one line."""


@dataclass(frozen=True)
class Archive:
    """A file to fetch: its name, its SHA-256, its address (None: only a folder can have it)."""

    name: str
    sha256: str
    url: str | None = None


@dataclass(frozen=True)
class Dataset:
    """A folder of data/full/.

    `parts` are needed all; the archives of one part are alternatives, the public one first. `digest` and `files`
    describe the content, whichever archives it came from. Where `name` is a path, it goes into the data set that its
    first part names.
    """

    name: str
    parts: tuple[tuple[Archive, ...], ...]
    unpack: Callable[[Path, Path, Progress], None]
    patterns: tuple[str, ...]
    files: int
    digest: str


def unpack_reviews(pattern: re.Pattern, archive: Path, folder: Path, progress: Progress) -> None:
    """Unpack what an IMDB archive holds under names of this pattern, each as its group `file` says, into `folder`."""
    with (
        progress.open(archive, "rb", description=f"unpacking {archive.name}") as file,
        tarfile.open(fileobj=file) as tar,
    ):
        for member in tar:
            if member.isfile() and (match := pattern.fullmatch(member.name)):
                review = folder / match["file"]
                review.parent.mkdir(parents=True, exist_ok=True)
                review.write_bytes(tar.extractfile(member).read())


def unpack_sentences(archive: Path, folder: Path, progress: Progress) -> None:
    """Unpack one side of a Multi30k split into `folder`, under the name that torchtext expects."""
    name = archive.stem.replace("test_2016_flickr", "test2016")
    with (
        progress.open(archive, "rb", description=f"unpacking {archive.name}") as file,
        gzip.open(file) as sentences,
        open(folder / name, "wb") as out,
    ):
        shutil.copyfileobj(sentences, out)


def keep(file: Path, folder: Path, progress: Progress) -> None:
    """Copy a file that needs no unpacking into `folder`."""
    shutil.copyfile(file, folder / file.name)


SENTENCES = {
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
}
IMDB = Archive(
    "aclImdb_v1.tar.gz",
    "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
    "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
)
# Of llama2.c's series of small models (MIT): seven integers and float32 tables, and the 512 pieces that it reads.
LLAMA = "https://huggingface.co/karpathy/tinyllamas/resolve/main/stories260K/"
TABLES = {
    "stories260K.bin": "b0a507e7ad0f626624f17112325e66691f9076d622e1d3274d103d00299f2696",
    "tok512.bin": "037cb335abb25d1fa9e8ecae30ed2a3a8ace9302862ebcdc05d51a6bbb10c312",
}
DATASETS = (
    Dataset(
        name="multi30k",
        parts=tuple((Archive(name, digest, MULTI30K + name),) for name, digest in SENTENCES.items()),
        unpack=unpack_sentences,
        patterns=("*.de", "*.en"),
        files=6,
        digest="0e1e7790db889f7b0a60bc72ab524129b6698f65f2622eae985a60b1d4c13d73",
    ),
    Dataset(
        name="imdb",
        parts=(
            (
                IMDB,
                # The same 50,000 labelled reviews without the 50,000 unlabelled ones and the bags of words.
                Archive(
                    "aclImdb_v1_labelled.tar.gz", "f54a830e79a18f3e6b7d3ede459f381c50d50d8fd95617641c2f7e999a3847f0"
                ),
            ),
        ),
        unpack=partial(unpack_reviews, LABELLED),
        patterns=("aclImdb/t*/pos/*.txt", "aclImdb/t*/neg/*.txt"),
        files=50_000,
        digest="2f7a3d1aad2cf5ce9dd4699e85e7bb337637c618d2315e0585921ae932728c56",
    ),
    Dataset(
        name="imdb/aclImdb/train/unsup",
        parts=(
            (
                IMDB,
                # The 50,000 unlabelled reviews alone.
                Archive(
                    "aclImdb_v1_unlabelled.tar.gz", "a9496b7fee8e1d7682d0a5d64c97e09e8866ac576ed2b6d1ab6cb338898a60fc"
                ),
            ),
        ),
        unpack=partial(unpack_reviews, UNLABELLED),
        patterns=("*.txt",),
        files=50_000,
        digest="976f177cba1abf0fe9c2a6e8e9d9488727ca1ac6f5316e0df6025a20c8ad9890",
    ),
    Dataset(
        name="tinyllamas",
        parts=tuple((Archive(name, digest, LLAMA + name),) for name, digest in TABLES.items()),
        unpack=keep,
        patterns=("*.bin",),
        files=2,
        digest="e50c5b2f34dda36627f94c1d4a196afd36f3fbf9956fb11daeffecbba6b2508b",
    ),
)


def sha256(path: Path, progress: Progress) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    total = hashlib.sha256()
    with progress.open(path, "rb", description=f"checking {path.name}") as file:
        while chunk := file.read(CHUNK):
            total.update(chunk)
    return total.hexdigest()


def verify(folder: Path, dataset: Dataset, progress: Progress) -> None:
    """Check that a folder holds exactly the data set's files, byte for byte.

    Args:
        folder: the folder to read; files that match none of the data set's patterns are ignored.
        dataset: what should be there.
        progress: where to show the progress.
    Raises:
        DataError: a file is missing, added or altered.
    """
    files = sorted((p.relative_to(folder).as_posix(), p) for pattern in dataset.patterns for p in folder.glob(pattern))
    total = hashlib.sha256()
    for name, path in progress.track(files, description=f"checking {folder.name}/"):
        content = path.read_bytes()
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    if total.hexdigest() != dataset.digest:
        found = "some of them altered" if len(files) == dataset.files else f"expected {dataset.files:,}"
        raise DataError(f"{folder} is not complete ({len(files):,} files, {found}): move it away and run this again")


def find(part: tuple[Archive, ...], dataset: str, source: Path, progress: Progress) -> Path:
    """Find one archive of a part, with the right checksum, in a folder or in its subfolder named for the data set.

    Args:
        part: the alternatives; any of them will do.
        dataset: the data set's name.
        source: the folder.
        progress: where to show the progress.
    Returns:
        Where it is.
    Raises:
        DataError: none is there, or none has the right checksum.
    """
    damaged = None
    for archive in part:
        for path in (source / archive.name, source / Path(dataset).parts[0] / archive.name):
            if path.is_file():
                if sha256(path, progress) == archive.sha256:
                    return path
                damaged = path
    if damaged:
        size = f"{damaged.stat().st_size:,} bytes"
        raise DataError(
            f"{damaged} ({size}) is cut short or damaged (wrong SHA-256): copy it anew, then run this again"
        )
    names = " or ".join(archive.name for archive in part)
    raise DataError(f"{source} has no {names}: put it there, run this again")


def set_aside(path: Path, digest: str) -> Path:
    """Rename a file whose content is wrong, so that it is neither used nor lost; return its new name."""
    return path.rename(path.with_name(f"{path.name}.bad-{digest[:8]}"))


def stream(url: str, part: Path, progress: Progress, task: int) -> None:
    """Ask the server for the bytes that `part` still lacks and append them as they come."""
    have = part.stat().st_size if part.exists() else 0
    # identity: a server that compresses on the way would send other bytes, and count them otherwise.
    headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"}
    with requests.get(url, headers=headers, stream=True, timeout=30) as reply:
        if reply.status_code == requests.codes.requested_range_not_satisfiable:
            return  # nothing is left to send: the checksum tells whether that is right
        reply.raise_for_status()
        if reply.headers.get("Content-Type", "").startswith("text/html"):
            raise DataError(f"{url} answers with a web page (a login page?): open it in a browser, then run this again")
        resumed = reply.status_code == requests.codes.partial_content
        start = have if resumed else 0
        length = reply.headers.get("Content-Length")
        progress.update(task, completed=start, total=start + int(length) if length else None)
        with open(part, "ab" if resumed else "wb") as out:
            for chunk in reply.iter_content(CHUNK):
                out.write(chunk)
                progress.advance(task, len(chunk))


def fetch(url: str, part: Path, progress: Progress) -> None:
    """Download `url` into `part`, continuing what is there, again and again as long as new bytes come.

    Args:
        url: the address.
        part: the unfinished file.
        progress: where to show the progress.
    Raises:
        DataError: the server refuses, or TRIES connections in a row brought nothing.
    """
    task = progress.add_task(f"fetching {part.stem}", total=None)
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            return stream(url, part, progress, task)
        except requests.HTTPError as error:
            answer = f"{error.response.status_code} {error.response.reason}"
            raise DataError(f"{url} answers {answer}: get the archive elsewhere and use --from DIR") from error
        except requests.RequestException as error:
            grown = part.exists() and part.stat().st_size > before
            failures = 0 if grown else failures + 1
            if failures == TRIES:
                raise DataError(f"cannot reach {url}: run this again to continue, or use --from DIR") from error
            time.sleep(PAUSE)


def download(archive: Archive, folder: Path, progress: Progress) -> Path:
    """Get an archive from its public address, unless the folder has it.

    Args:
        archive: what to get.
        folder: where it goes; unfinished, it is `NAME.part` there.
        progress: where to show the progress.
    Returns:
        The archive's path; its checksum is right.
    Raises:
        DataError: it could not be had, or what came has another checksum.
    """
    finished, part = folder / archive.name, folder / f"{archive.name}.part"
    if finished.exists():
        found = sha256(finished, progress)
        if found == archive.sha256:
            return finished
        set_aside(finished, found)
    folder.mkdir(parents=True, exist_ok=True)
    fetch(archive.url, part, progress)
    found = sha256(part, progress)
    if found != archive.sha256:
        kept = set_aside(part, found)
        raise DataError(f"what came from {archive.url} has a wrong SHA-256 (kept as {kept}): run this again")
    return part.rename(finished)


def install(dataset: Dataset, full: Path, source: Path | None, progress: Progress) -> None:
    """Bring one data set into `full`, or check it when it is there.

    Args:
        dataset: which one.
        full: the folder of the full data sets.
        source: a folder with the archives, or None for the public addresses.
        progress: where to show the progress.
    Raises:
        DataError: an archive or the content is missing, incomplete or altered.
    """
    target = full / dataset.name
    staging = full / f"{target.name}.part"  # beside the data sets, so that none is taken for there while one of it is
    if not target.exists():
        if source:
            archives = [find(part, dataset.name, source, progress) for part in dataset.parts]
        else:
            archives = [download(part[0], full / "downloads", progress) for part in dataset.parts]
        # torchtext takes any folder of the right name for a complete one: it gets that name when it is.
        staging.mkdir(parents=True, exist_ok=True)
        for archive in archives:
            dataset.unpack(archive, staging, progress)
        verify(staging, dataset, progress)
        os.rename(staging, target)
    else:
        verify(target, dataset, progress)


def main(argv: list[str] | None = None) -> int:
    """Run the command; return its exit status: 0 done, 1 a data set could not be had, 130 interrupted."""
    parser = argparse.ArgumentParser(description="Put IMDB, Multi30k and a small Llama into data/full/.")
    parser.add_argument("--from", dest="source", type=Path, metavar="DIR", help="take the archives from this folder")
    source = parser.parse_args(argv).source
    if source and not source.is_dir():
        parser.error(f"{source} is not a folder")
    status = 0
    for dataset in DATASETS:
        whole = FULL / Path(dataset.name).parts[0]
        if whole != FULL / dataset.name and not whole.exists():
            continue  # what this goes into could not be had: that has been said
        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
        try:
            with Progress(*columns, transient=True) as progress:
                install(dataset, FULL, source, progress)
            print(f"{FULL / dataset.name} is complete: {dataset.files:,} files")
        except (DataError, OSError) as error:
            print(f"error: {dataset.name}: {error}", file=sys.stderr)
            status = 1
        except KeyboardInterrupt:
            print("interrupted: nothing is lost, run the same command again to continue", file=sys.stderr)
            return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
