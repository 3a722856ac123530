"""Subword models: byte pairs by SentencePiece, with the chapters' special tokens."""

import io

import sentencepiece

UNK, PAD, SOS, EOS = range(4)


def train_subwords(lines: list[str], vocabulary: int) -> bytes:
    """A SentencePiece model of byte pairs for the lines."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        model_type="bpe",
        vocab_size=vocabulary,
        character_coverage=1.0,
        unk_id=UNK,
        pad_id=PAD,
        bos_id=SOS,
        eos_id=EOS,
        minloglevel=2,
    )
    return written.getvalue()
