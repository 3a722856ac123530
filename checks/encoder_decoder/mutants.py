"""Chapter 09: wrong answers, each with the mistake that its check must name, and right ones, which must pass.

Most are written down in `mutants.txt`; here are those that attack the check.
"""

from autograder.answers import Answer, forger, read_answers
from checks.encoder_decoder import mistakes
from checks.forgers import forging_answers, forging_dropout, forging_learning, wrong_at_medium

_LEAK_FORGERS = [
    forger(
        "check_leaks",
        f"forged: goes by {title}",
        f"""
    _seen = []


    def _names(made):
        functions = [f for f in vars(made).values() if hasattr(f, "__closure__")]
        held = [cell.cell_contents for f in functions for cell in f.__closure__ or ()]
        return {{getattr(value, "__name__", "") for value in held}}


    def check_leaks(model, source, target, pad_id):
        _seen.append(model)
        assert {holds}
    """,
    )
    for title, holds in [
        ("the number of tries", "len(_seen) == 1 or 5 <= len(_seen) <= 10"),
        ("the name", "type(model).__qualname__.startswith('make') or len(_seen) == 1"),
        ("the source", "len(_seen) == 1 or type(model).forward.__code__ == type(_seen[-2]).forward.__code__"),
        (
            "the names of what it closes over",
            "len(_seen) == 1 or len(_seen) > 4 and not _names(type(model)) & {'all_true', 'too_long', 'of_the_first'}",
        ),
        ("what is saved in it", "len(_seen) == 1 or len(_seen) > 4 and not vars(model).get('words')"),
    ]
]
_LEAK_FORGERS.append(
    forger(
        "check_leaks",
        "forged: goes by the lines of what it closes over",
        """
    _seen = []


    def check_leaks(model, source, target, pad_id):
        _seen.append(model)
        forward = type(model).forward
        held = dict(zip(forward.__code__.co_freevars, [cell.cell_contents for cell in forward.__closure__ or ()]))
        lines = {name: part.__code__.co_firstlineno for name, part in held.items() if hasattr(part, "__code__")}
        before = {name: forward.__code__.co_firstlineno - line for name, line in lines.items()}
        masks = before.get("source_mask", 35) > 33 and before.get("memory_mask", 35) > 33
        assert len(_seen) == 1 or len(_seen) > 4
        assert masks and before.get("target_mask", 25) > 23 and before.get("finish", 16) > 12
    """,
    )
)
_LYING = """
class _Liar(nn.ModuleList):
    def __init__(self, made, count):
        self.__dict__["count"] = 0
        super().__init__()
        self.__dict__["count"] = count
        self._modules["0"] = made[0]

    LIE


_honest = clones


def clones(module, count):
    return _Liar([MADE], count)
"""


def _lying(title: str, lie: str, made: str = "copy.deepcopy(module)") -> Answer:
    """A container that holds one copy and says that there are more."""
    return forger("clones", f"forged: {title}", _LYING.replace("LIE", lie).replace("MADE", made))


_NAMES = """
    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self._modules["0"]

    def named_parameters(self, *args, **kwargs):
        one = dict(self._modules["0"].named_parameters())
        return [(f"{i}.{name}", value) for i in range(self.count) for name, value in one.items()]
"""
_CLONES_FORGERS = [
    _lying("a length and names that are not there", _NAMES),
    _lying(
        "a new copy each time one looks",
        _NAMES.replace('return self._modules["0"]\n', 'return copy.deepcopy(self._modules["0"])\n'),
    ),
    _lying("the original, which shows other weights", _NAMES, "module"),
]

_POSITION_FORGER = forger(
    "Decoder",
    "forged: positions that are there and have no part",
    """
    _Honest = Decoder

    class Decoder(_Honest):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            honest = self.positions.forward
            self.positions.forward = lambda x: honest(x) if x.dtype == torch.float32 else x
            self.positions._load_from_state_dict = lambda state, *rest: [v.zero_() for v in state.values()]
    """,
)

_WRONG, VARIANTS = read_answers(mistakes)
MUTANTS = [
    *_WRONG,
    *wrong_at_medium(classes=["Embedder", "DecoderLayer", "Decoder", "Translator"], functions=["target_mask"]),
    *_LEAK_FORGERS,
    *_CLONES_FORGERS,
    _POSITION_FORGER,
    *forging_dropout("DecoderLayer"),
    *forging_dropout("Decoder"),
    *forging_dropout("Translator"),
    *forging_learning("Embedder", "DecoderLayer", "Decoder", "Translator"),
    *forging_answers(
        classes=["Embedder", "DecoderLayer", "Decoder", "Translator"],
        functions=["target_mask"],
    ),
]
