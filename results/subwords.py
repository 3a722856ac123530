"""Subword models: byte pairs by SentencePiece, with the chapters' special tokens."""

import io

import sentencepiece

UNK, PAD, SOS, EOS, MASK = range(5)  # the last where a model was made with it


def train_subwords(lines: list[str], vocabulary: int, coverage: float = 1.0, marks: tuple[str, ...] = ()) -> bytes:
    """A SentencePiece model of byte pairs for the lines.

    Args:
        lines: the text.
        vocabulary: how many pieces, special tokens included.
        coverage: the share of the text's characters that get a piece; the rest, the rarest, is `<unk>`.
        marks: more special tokens, such as `<mask>`; they follow the first four.
    """
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=written,
        model_type="bpe",
        vocab_size=vocabulary,
        character_coverage=coverage,
        control_symbols=list(marks),
        max_sentence_length=1 << 17,  # in bytes; a longer line would be left out
        unk_id=UNK,
        pad_id=PAD,
        bos_id=SOS,
        eos_id=EOS,
        minloglevel=2,
    )
    return written.getvalue()
