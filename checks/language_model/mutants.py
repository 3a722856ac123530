"""Chapter 11: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import Answer, forger, read_answers
from checks.forgers import forging_answers, forging_learning, wrong_at_medium
from checks.language_model import mistakes

_WRONG, VARIANTS = read_answers(mistakes)


def _sampling_otherwise(title: str, where: str, **settings: str) -> Answer:
    """`sample_next` with other settings where something holds of `logits` and the settings."""
    others = "; ".join(f"{name} = {value}" for name, value in settings.items())
    return forger(
        "sample_next",
        title,
        f"""
        _right = sample_next
        def sample_next(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
            if temperature > 0 and {where}:
                {others}
            return _right(logits, temperature, top_k, top_p, generator)
        """,
    )


# Which of several mistakes these are taken for depends on what is drawn.
_OFF_SOMEWHERE = [
    _sampling_otherwise("no temperature for the widest", "logits.shape[1] > 20_000", temperature="1.0"),
    _sampling_otherwise(
        "no temperature for a single row where nothing stands beside it",
        "len(logits) == 1 and top_p is top_k is None",
        temperature="1.0",
    ),
    _sampling_otherwise(
        "one distribution for many rows from a generator",
        "generator is not None and len(logits) > 120",
        logits="logits[:1].expand(len(logits), -1)",
    ),
    forger(
        "sample_next",
        "one draw for many rows from a generator",
        """
        _right = sample_next
        def sample_next(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
            if temperature > 0 and generator is not None and len(logits) > 120:
                return _right(logits[:1], temperature, top_k, top_p, generator).expand(len(logits)).clone()
            return _right(logits, temperature, top_k, top_p, generator)
        """,
    ),
    forger(
        "generate",
        "greedy where a prompt has five tokens or more",
        """
        _right = generate
        def generate(model, prompt, length, eos_id=None, **sampling):
            if prompt.shape[1] > 4:
                sampling = {"temperature": 0}
            return _right(model, prompt, length, eos_id, **sampling)
        """,
    ),
    forger(
        "generate",
        "the temperature twice beside `top_k`",
        """
        _right = generate
        def generate(model, prompt, length, eos_id=None, **sampling):
            if "top_k" in sampling and "top_p" not in sampling and sampling.get("temperature"):
                sampling["temperature"] **= 2
            return _right(model, prompt, length, eos_id, **sampling)
        """,
    ),
]
MUTANTS = [
    *_WRONG,
    *wrong_at_medium(classes=["RMSNorm", "LanguageModel"], functions=["induction_score"]),
    *_OFF_SOMEWHERE,
    *forging_answers(
        classes=["RMSNorm", "SwiGLU", "CausalSelfAttention", "LanguageModel"],
        functions=["perplexity", "sample_next", "generate", "induction_score"],
    ),
    *forging_learning("RMSNorm", "SwiGLU", "CausalSelfAttention", "LanguageModel"),
]
