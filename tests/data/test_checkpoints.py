"""The published checkpoint's file and vocabulary: what is not theirs is refused in one line."""

import struct

import pytest

from attention_course.checkpoints import CheckpointError, count, read_checkpoint, read_vocabulary

SIZES = {"dim": 8, "hidden": 5, "depth": 2, "heads": 4, "kv_heads": 2, "vocab_size": 6, "positions": 3}


def write(path, sizes=SIZES, numbers=None):
    numbers = count(SIZES) if numbers is None else numbers
    path.write_bytes(struct.pack("<7i", *sizes.values()) + struct.pack(f"<{numbers}f", *range(numbers)))
    return path


def test_what_was_written_is_read(tmp_path):
    sizes, numbers = read_checkpoint(write(tmp_path / "a.bin"))
    assert sizes == SIZES
    assert numbers.tolist() == list(range(count(SIZES)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"numbers": 100}, "cut short"),
        ({"numbers": 5000}, "another kind of checkpoint"),
        ({"sizes": SIZES | {"vocab_size": -6}}, "another kind of checkpoint"),
        ({"sizes": SIZES | {"kv_heads": 3}}, "does not fit together"),
    ],
)
def test_a_file_that_is_not_one(tmp_path, change, words):
    with pytest.raises(CheckpointError, match=words) as refusal:
        read_checkpoint(write(tmp_path / "a.bin", **change))
    assert "\n" not in str(refusal.value)


def test_a_file_without_a_header(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\x00" * 20)
    with pytest.raises(CheckpointError, match="fewer than its header"):
        read_checkpoint(tmp_path / "a.bin")


def vocabulary(*pieces):
    packed = [struct.pack("<fi", 0.0, len(piece.encode())) + piece.encode() for piece in pieces]
    return struct.pack("<i", 7) + b"".join(packed)


def test_a_vocabulary(tmp_path):
    path = tmp_path / "v.bin"
    path.write_bytes(vocabulary("<unk>", " a", "é"))
    assert read_vocabulary(path, 3) == ["<unk>", " a", "é"]
    with pytest.raises(CheckpointError, match="another model's vocabulary"):
        read_vocabulary(path, 4)
    for broken in (path.read_bytes()[:-1], path.read_bytes() + b"12345", b""):
        path.write_bytes(broken)
        with pytest.raises(CheckpointError):
            read_vocabulary(path, 3)
