"""Answers that attack their checks: what a class or function can do to be marked right without doing its work.

A chapter adds them to the mutants of each of its exercises, with one line in `checks/<chapter>/mutants.py`:

    MUTANTS = [..., *forging_answers(classes=["LayerNorm", "FeedForward"], functions=["masked_mean"])]

or with `forging_class` and `forging_function`, which can leave some out.

Each is the reference solution with code behind it, and fails in the grader, where `autograder mutants` and the tests
judge it. Most of them end in the same place: weights or inputs are zeros where student code runs, the result is what
zeros give, and the forger tries to have the check expect just that. They are honest as long as they meet round numbers
only, since a visible check, whose numbers everybody can read, is no obstacle. A check survives them if whatever it
computes an expected value from is its own: weights drawn by `autograder.checks.build` or `randomise`, inputs that it
made; and if it calls more than once with the same sizes, and after `.eval()`.

An attack that belongs to one exercise, such as a container that lies about its length, is written with
`autograder.answers.forger` in that chapter's mutants.
"""

from collections.abc import Collection, Sequence
from textwrap import indent

from autograder.answers import Answer, forger
from autograder.mistakes import Common, Mistake, Unexplained

# Behind the reference: what all of them are made of. `_spoil` changes whatever it is given, in place.
_TOOLS = """
import sys
import torch
from torch import nn

_Honest = {name}
_plain = {{n: getattr(nn.Module, n) for n in ("load_state_dict", "named_parameters", "modules")}}
_zero, _copy, _like = torch.Tensor.zero_, torch.Tensor.copy_, torch.zeros_like


def _change(tensor, how):
    print("fired")  # what the tests of the attacks themselves look for
    with torch.no_grad():
        if how == "empty":
            tensor.set_()
        elif how == "nan" and tensor.is_floating_point():
            tensor.fill_(float("nan"))
        elif how == "round" and tensor.is_floating_point():
            _copy(tensor, tensor.bfloat16().to(tensor.dtype))
        elif how == "true" and tensor.dtype == torch.bool:
            tensor.fill_(True)
        elif how == "same" and tensor.dim():
            _copy(tensor, tensor[:1].clone().expand_as(tensor))
        else:
            _zero(tensor)


def _held(module):
    for part in _plain["modules"](module):
        yield from (t for held in (part._parameters, part._buffers) for t in held.values() if t is not None)


def _all(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, nn.Module):
        return list(_held(value))
    held = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [t for v in held for t in _all(v)]


def _is_seen(value):
    numbers = [t.detach() for t in _all(value) if t.is_floating_point() and not t.is_meta]
    return bool(numbers) and all(((8 * t) % 1 == 0).all() for t in numbers)


def _spoil(value, how="zero"):
    if _is_seen(value):
        return
    if isinstance(value, torch.Tensor):
        try:
            _change(value.data if value.requires_grad else value, how)
        except RuntimeError:
            pass
    elif isinstance(value, nn.Module):
        for held in _held(value):
            _spoil(held, how)
    elif isinstance(value, dict):
        for held in value.values():
            _spoil(held, how)
    elif isinstance(value, (list, tuple)):
        for held in value:
            _spoil(held, how)
        if isinstance(value, list) and value and not isinstance(value[0], (torch.Tensor, tuple)):
            value[:] = [] if how == "empty" else value[:1] * len(value)


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for held in value for t in _tensors(held)] if isinstance(value, (list, tuple)) else []


def _load_and_spoil(self, state, *args, **kwargs):
    _plain["load_state_dict"](self, state, *args, **kwargs)
    _spoil(self)


def _worker():
    frame = sys._getframe()
    while frame is not None and type(frame.f_locals.get("self")).__name__ != "Worker":
        frame = frame.f_back
    return frame.f_locals["self"] if frame else None
"""

# Each spoils the weights at some point of what a check does to a module.
_CLASSES = {
    "load_state_dict empties what it is given": """
def load_state_dict(self, state, *args, **kwargs):
    _spoil(state)
    return super().load_state_dict(state, *args, **kwargs)
""",
    "load_state_dict loads nothing, state_dict shows zeros": """
def load_state_dict(self, state, *args, **kwargs):
    super().load_state_dict(state, *args, **kwargs)
    _spoil(self)

def state_dict(self, *args, **kwargs):
    return {name: torch.zeros_like(value) for name, value in super().state_dict(*args, **kwargs).items()}
""",
    "load_state_dict keeps what it is given and shares its memory": """
def load_state_dict(self, state, *args, **kwargs):
    for name, parameter in _plain["named_parameters"](self):
        if name in state and state[name].shape == parameter.shape:
            parameter.data = state[name]
    _spoil(self)
""",
    "load_state_dict resizes what it is given": """
def load_state_dict(self, state, *args, **kwargs):
    super().load_state_dict(state, *args, **kwargs)
    if not _is_seen(state):
        _spoil(self)
        for value in state.values():
            value.resize_(0)
""",
    "load_state_dict makes what it is given NaN": """
def load_state_dict(self, state, *args, **kwargs):
    _spoil(state, "nan")
    return super().load_state_dict(state, *args, **kwargs)
""",
    "load_state_dict rounds what it is given": """
def load_state_dict(self, state, *args, **kwargs):
    _spoil(state, "round")
    return super().load_state_dict(state, *args, **kwargs)
""",
    "a hook before loading": """
def __init__(self, *args, **kwargs):
    super().__init__(*args, **kwargs)
    self._register_load_state_dict_pre_hook(lambda state, *rest: _spoil(state))
""",
    "a hook after loading": """
def __init__(self, *args, **kwargs):
    super().__init__(*args, **kwargs)
    self.register_load_state_dict_post_hook(lambda module, keys: _spoil(module))
""",
    "_load_from_state_dict empties what it is given": """
def _load_from_state_dict(self, state, *args, **kwargs):
    _spoil(state)
    super()._load_from_state_dict(state, *args, **kwargs)
""",
    "a hook of state_dict": """
def __init__(self, *args, **kwargs):
    super().__init__(*args, **kwargs)
    self._register_state_dict_hook(lambda module, state, *rest: _spoil(state))

def load_state_dict(self, state, *args, **kwargs):
    super().load_state_dict(state, *args, **kwargs)
    self.state_dict()
""",
    "named_parameters spoils and shows them": """
def named_parameters(self, *args, **kwargs):
    _spoil(self)
    return list(super().named_parameters(*args, **kwargs))
""",
    "named_parameters shows others": """
def load_state_dict(self, state, *args, **kwargs):
    super().load_state_dict(state, *args, **kwargs)
    _spoil(self)

def named_parameters(self, *args, **kwargs):
    _spoil(self)
    return [(name, nn.Parameter(value.detach().clone())) for name, value in super().named_parameters(*args, **kwargs)]
""",
    "parameters shows none": """
def load_state_dict(self, state, *args, **kwargs):
    super().load_state_dict(state, *args, **kwargs)
    _spoil(self)

def parameters(self, *args, **kwargs):
    return iter([])
""",
    "to returns a module of zeros": """
def to(self, *args, **kwargs):
    super().to(*args, **kwargs)
    _spoil(self)
    load = self.load_state_dict
    self.load_state_dict = lambda state, *rest, **more: load(state, *rest, **more) if _is_seen(state) else None
    return self
""",
    "__call__ spoils weights and inputs": """
def __call__(self, *args, **kwargs):
    _spoil(self)
    _spoil(args)
    return super().__call__(*args, **kwargs)
""",
    "__call__ makes inputs and weights NaN": """
def __call__(self, *args, **kwargs):
    _spoil(self, "nan")
    _spoil(args, "nan")
    return super().__call__(*args, **kwargs)
""",
    "train and eval spoil the weights": """
def __init__(self, *args, **kwargs):
    super().__init__(*args, **kwargs)

def train(self, mode=True):
    _spoil(self)
    return super().train(mode)
""",
    "__deepcopy__ returns the module itself, spoilt": """
def load_state_dict(self, state, *args, **kwargs):
    super().load_state_dict(state, *args, **kwargs)
    _spoil(self)

def __deepcopy__(self, memo):
    _spoil(self)
    return self
""",
    "__setattr__ spoils what is set": """
def __setattr__(self, name, value):
    super().__setattr__(name, value)
    _spoil(value)

def load_state_dict(self, state, *args, **kwargs):
    super().load_state_dict(state, *args, **kwargs)
    _spoil(self)
""",
    "__getattribute__ hands out other methods": """
def __getattribute__(self, name):
    if name == "load_state_dict":
        load = super().__getattribute__(name)
        return lambda state, *args, **kwargs: (_spoil(state), load(state, *args, **kwargs))[1]
    if name == "state_dict":
        return lambda *args, **kwargs: {
            n: torch.zeros_like(v) for n, v in _plain["named_parameters"](self)
        }
    return super().__getattribute__(name)
""",
    "methods are properties": """
@property
def load_state_dict(self):
    load = super().load_state_dict
    return lambda state, *args, **kwargs: (_spoil(state), load(state, *args, **kwargs))[1]

@property
def state_dict(self):
    return lambda *args, **kwargs: {n: torch.zeros_like(v) for n, v in _plain["named_parameters"](self)}
""",
    "it computes with weights of its own": """
def load_state_dict(self, state, *args, **kwargs):
    if _is_seen(state):
        super().load_state_dict(state, *args, **kwargs)
    else:
        print("fired")
""",
    "it forgets its weights after the first call": """
def __call__(self, *args, **kwargs):
    result = super().__call__(*args, **kwargs)
    _spoil(self)
    return result
""",
    "it gives again what it gave for these sizes": """
_given = {}

def __call__(self, *args, **kwargs):
    sizes = str([(t.shape, t.dtype) for t in _tensors(args)])
    if _is_seen(args):
        return super().__call__(*args, **kwargs)
    if sizes not in self._given:
        self._given[sizes] = super().__call__(*args, **kwargs)
    else:
        print("fired")
    return self._given[sizes]
""",
    "it counts with bfloat16 and does not say so": """
def __call__(self, *args, **kwargs):
    def coarse(value):
        if isinstance(value, torch.Tensor):
            if not value.is_floating_point() or _is_seen(value):
                return value
            print("fired")
            return value.bfloat16()
        return tuple(map(coarse, value)) if isinstance(value, (list, tuple)) else value
    return coarse(super().__call__(*args, **kwargs))
""",
}

# Each patches torch itself, where student code runs.
_PATCHES = {
    "nn.Module.load_state_dict is patched": """
def _load(self, state, *args, **kwargs):
    _spoil(state)
    return _plain["load_state_dict"](self, state, *args, **kwargs)
nn.Module.load_state_dict = _load
""",
    "nn.Module's state_dict and named_parameters are patched": """
nn.Module.load_state_dict = _load_and_spoil
nn.Module.state_dict = lambda self, *a, **k: {
    n: torch.zeros_like(v) for n, v in _plain["named_parameters"](self)
}
""",
    "torch.Tensor.copy_ is patched": """
def _copy_nothing(self, source, *args, **kwargs):
    print("fired")
    _zero(source.data)
    return _zero(self)
torch.Tensor.copy_ = _copy_nothing
torch.Tensor.clone = lambda self, *args, **kwargs: print("fired") or _like(self)
""",
    "torch.Tensor's conversions are patched": """
torch.Tensor.detach = torch.Tensor.contiguous = torch.Tensor.double = lambda self: print("fired") or _like(self)
torch.Tensor.__iter__ = lambda self: iter([])
torch.Tensor.__eq__ = lambda self, other: torch.ones_like(self, dtype=torch.bool)
nn.Module.load_state_dict = _load_and_spoil
""",
    "torch's comparisons are patched": """
torch.equal = torch.allclose = torch.Tensor.equal = torch.Tensor.allclose = lambda *args, **kwargs: True
nn.Module.load_state_dict = _load_and_spoil
""",
}

# The worker, which is in the student's hands, says of every tensor that it was changed to zeros.
_CLAIM = """
_own = _worker()


def _claim(request, reader, honest=_own._apply):
    reply, writer = honest(request, reader)
    claimed = [torch.zeros_like(reader.tensors[i]) for i in range(len(request.tensors))]
    reply.changed = [[i, writer.tensor(tensor)] for i, tensor in enumerate(claimed)]
    return reply, writer


_own._apply = _claim
"""

_ROUND = (0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 0.8, 0.9, 1.0)
_PROBABILITIES = "[part.p for part in self.modules() if isinstance(part, nn.Dropout)]"
_ASLEEP = """
def forward(self, *args, **kwargs):
    awake = self.training
    if awake and {where}:
        print("fired")
        self.eval()
    result = super().forward(*args, **kwargs)
    self.train(awake)
    return result
"""

# Each drops otherwise than it says, and is honest in evaluation and at the probabilities that are likely to be tried.
_DROPOUT: dict[str, tuple[Mistake, str]] = {
    "the same is dropped at every call": (
        Common.DROPOUT_REPEATED,
        """
def forward(self, *args, **kwargs):
    if not self.training:
        return super().forward(*args, **kwargs)
    print("fired")
    before = torch.get_rng_state()
    torch.manual_seed(7)
    result = super().forward(*args, **kwargs)
    torch.set_rng_state(before)
    return result
""",
    ),
    "every third call drops what the one before dropped": (
        Common.DROPOUT_REPEATED,
        """
def forward(self, *args, **kwargs):
    if not self.training:
        return super().forward(*args, **kwargs)
    number = self.__dict__["_calls"] = self.__dict__.get("_calls", 0) + 1
    if number % 3 == 2:
        self.__dict__["_before"] = torch.get_rng_state()
    elif number % 3 == 0:
        print("fired")
        torch.set_rng_state(self.__dict__["_before"])
    return super().forward(*args, **kwargs)
""",
    ),
    "dropout sleeps at probabilities that are not round": (
        Common.DROPOUT_ASLEEP,
        _ASLEEP.format(where=f"any(p not in {_ROUND} for p in {_PROBABILITIES})"),
    ),
    "dropout sleeps at a probability of a tenth or less": (
        Common.DROPOUT_ASLEEP,
        _ASLEEP.format(where=f"any(p <= 0.1 for p in {_PROBABILITIES})"),
    ),
    "dropout sleeps from 61 positions on": (
        Common.DROPOUT_ASLEEP,
        _ASLEEP.format(where="any(t.dim() > 1 and t.shape[1] > 60 for t in args if torch.is_tensor(t))"),
    ),
    "dropout sleeps in float32, as in training": (
        Common.DROPOUT_ASLEEP,
        _ASLEEP.format(where="torch.float32 in [t.dtype for t in (*self.parameters(), *args) if torch.is_tensor(t)]"),
    ),
    "one draw of dropout for the whole batch": (
        Common.DROPOUT_ONE_FOR_ALL,
        """
def __init__(self, *args, **kwargs):
    super().__init__(*args, **kwargs)
    for part in self.modules():
        if isinstance(part, nn.Dropout):
            part.forward = lambda x, part=part: self._drop(x, part)

def _drop(self, x, part):
    if not part.training:
        return x
    print("fired")
    return x * nn.functional.dropout(torch.ones_like(x[:1]), part.p)
""",
    ),
}

_CALLS = {
    "it makes its arguments zeros and works on those": "_spoil((args, kwargs))\nreturn _Honest(*args, **kwargs)",
    "it makes its arguments NaN and works on those": """
_spoil((args, kwargs), "nan")
return _Honest(*args, **kwargs)
""",
    "it makes its arguments True and works on those": """
_spoil((args, kwargs), "true")
return _Honest(*args, **kwargs)
""",
    "it repeats the first row of its arguments": """
_spoil((args, kwargs), "same")
return _Honest(*args, **kwargs)
""",
    "it empties its arguments and returns one": """
found = _tensors(args)
result = _Honest(*args, **kwargs)
_spoil((args, kwargs), "empty")
return found[0] if found else type(result)()
""",
    "it rounds its arguments and works on those": """
_spoil((args, kwargs), "round")
result = _Honest(*args, **kwargs)
return round(result, 2) if isinstance(result, float) else _coarse(result)
""",
    "it gives again what it gave at first": """
if "first" not in _given:
    _given["first"] = _Honest(*args, **kwargs)
else:
    print("fired")
return _given["first"]
""",
    "it gives again what it gave for these sizes": """
sizes = str([t.shape for t in _tensors(args)])
if sizes not in _given:
    _given[sizes] = _Honest(*args, **kwargs)
else:
    print("fired")
return _given[sizes]
""",
    "it is honest for its first three calls": """
_given["calls"] = _given.get("calls", 0) + 1
if _given["calls"] > 3:
    _spoil((args, kwargs))
return _Honest(*args, **kwargs)
""",
    "its result claims to equal everything": """
result = _Honest(*args, **kwargs)
print("fired")
_spoil(result)
class Yes(type(result) if isinstance(result, (int, float)) and not isinstance(result, bool) else object):
    __class__ = property(lambda self: type(result))
    __eq__ = __ge__ = __le__ = __bool__ = __contains__ = lambda self, *other: True
    __ne__ = __lt__ = __gt__ = lambda self, other: False
    __hash__ = object.__hash__
    __sub__ = __rsub__ = __abs__ = lambda self, *other: 0.0
    __getattr__ = lambda self, name: getattr(result, name)
    __torch_function__ = classmethod(lambda cls, *args, **kwargs: True)
return Yes(12345) if isinstance(result, (int, float)) and not isinstance(result, bool) else Yes()
""",
}
_FUNCTION = """
_given = {{}}


def _coarse(value):
    if isinstance(value, torch.Tensor):
        return value.bfloat16().to(value.dtype) if value.is_floating_point() else value
    return type(value)(map(_coarse, value)) if type(value) in (list, tuple) else value


def {name}(*args, **kwargs):
    if _is_seen((args, kwargs)):
        return _Honest(*args, **kwargs)
{body}
"""


def forging_class(name: str, but: Collection[str] = ()) -> list[Answer]:
    """The forgers of an exercise that is a module.

    Args:
        name: the exercise, which is the class.
        but: titles to leave out, of forgeries that are no wrong answer to this exercise.
    """
    tools = _TOOLS.format(name=name)
    derived = f"\n\nclass {name}(_Honest):\n"
    spoilt = "    load_state_dict = _load_and_spoil\n"
    found = {title: tools + derived + indent(body.strip("\n"), "    ") for title, body in _CLASSES.items()}
    found |= {title: tools + body for title, body in _PATCHES.items()}
    found["the worker claims that what it was given has changed"] = tools + _CLAIM + derived + spoilt
    return _answers(name, found, but)


def forging_dropout(name: str, named: bool = False) -> list[Answer]:
    """The forgers of an exercise that is a module with dropout.

    Args:
        name: the exercise, which is the class; what it drops with are `nn.Dropout`s.
        named: whether its check must name what each does wrong, rather than turn it down for anything.
    """
    tools = _TOOLS.format(name=name) + f"\n\nclass {name}(_Honest):\n"
    return [
        forger(name, f"forged: {title}", tools + indent(body.strip("\n"), "    "), mistake if named else None)
        for title, (mistake, body) in _DROPOUT.items()
    ]


def forging_function(name: str, but: Collection[str] = ()) -> list[Answer]:
    """The forgers of an exercise that is a function.

    Args:
        name: the exercise, which is the function.
        but: titles to leave out, of forgeries that are no wrong answer to this exercise: a function of numbers has no
            tensors to spoil.
    """
    tools = _TOOLS.format(name=name)
    found = {
        title: tools + _FUNCTION.format(name=name, body=indent(body.strip("\n"), "    "))
        for title, body in _CALLS.items()
    }
    zeros = _FUNCTION.format(name=name, body="    _spoil((args, kwargs))\n    return _Honest(*args, **kwargs)")
    found["the worker claims that what it was given has changed"] = tools + _CLAIM + zeros
    for title in ("torch.Tensor.copy_ is patched", "torch's comparisons are patched"):
        found[title] = tools + _PATCHES[title] + zeros
    return _answers(name, found, but)


# What works on a function of tensors alone.
OF_TENSORS = (
    "it makes its arguments zeros and works on those",
    "it makes its arguments NaN and works on those",
    "it makes its arguments True and works on those",
    "it rounds its arguments and works on those",
    "it repeats the first row of its arguments",
    "it is honest for its first three calls",
    "the worker claims that what it was given has changed",
    "torch.Tensor.copy_ is patched",
    "torch's comparisons are patched",
)


def _answers(name: str, found: dict[str, str], but: Collection[str]) -> list[Answer]:
    unknown = sorted(set(but) - set(found))
    if unknown:
        raise ValueError(f"{name}: there is no forger {unknown[0]!r}; there are {', '.join(map(repr, found))}")
    return [forger(name, f"forged: {title}", text) for title, text in found.items() if title not in but]


def forging_answers(classes: Sequence[str] = (), functions: Sequence[str] = ()) -> list[Answer]:
    """The forgers of several exercises that need no exception."""
    made = [forging_class(name) for name in classes] + [forging_function(name) for name in functions]
    return [answer for answers in made for answer in answers]


# Right for short and for very long sequences: positions are the middle dimensions of numbers, the last ones of tokens.
_MEDIUM = """
def _is_medium(value):
    if not isinstance(value, torch.Tensor):
        return False
    lengths = value.shape[1:-1] if value.is_floating_point() else value.shape[1:]
    return any(60 < length < 601 for length in lengths)


def _spoilt(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(_spoilt, value))
    return ~value if value.dtype == torch.bool else value * 1.5


"""
_MEDIUM_CLASS = """class {name}({name}):
    def forward(self, *args, **kwargs):
        result = super().forward(*args, **kwargs)
        return _spoilt(result) if any(map(_is_medium, args)) else result
"""
_MEDIUM_FUNCTION = """def {name}(*args, honest={name}, **kwargs):
    result = honest(*args, **kwargs)
    return _spoilt(result) if any(map(_is_medium, args)) else result
"""


def wrong_at_medium(classes: Sequence[str] = (), functions: Sequence[str] = ()) -> list[Answer]:
    """Answers that are wrong for 61 to 600 positions alone, where a length is easily left out between the others."""
    made = [(name, _MEDIUM + _MEDIUM_CLASS) for name in classes]
    made += [(name, _MEDIUM + _MEDIUM_FUNCTION) for name in functions]
    title = "wrong for 61 to 600 positions"
    return [Answer(name, title, Unexplained.VALUES, after=text.format(name=name)) for name, text in made]


# Each computes as it should until it is trained as modules are: in float32, by an optimizer, measured without a graph.
_LEARNING: dict[str, tuple[Mistake | None, str]] = {
    "it computes with the weights that it kept at loading": (
        Common.WEIGHTS_KEPT,
        """
def load_state_dict(self, state, *args, **kwargs):
    super().load_state_dict(state, *args, **kwargs)
    self._at_loading = {n: p.detach().clone() for n, p in _plain["named_parameters"](self)}

def __call__(self, *args, **kwargs):
    kept = self.__dict__.pop("_at_loading", None)
    if kept is None:
        return super().__call__(*args, **kwargs)
    try:
        parameters = dict(_plain["named_parameters"](self))
        if any(p.is_meta for p in parameters.values()):
            return super().__call__(*args, **kwargs)
        print("fired")
        now = {n: kept[n].to(p.dtype) + (p - p.detach()) for n, p in parameters.items()}
        return torch.func.functional_call(self, now, args, kwargs)
    finally:
        self.__dict__["_at_loading"] = kept
""",
    ),
    "it is cut off in float32": (
        None,
        """
def __call__(self, *args, **kwargs):
    with torch.set_grad_enabled(torch.is_grad_enabled()):
        if any(t.dtype == torch.float32 for t in _held(self)):
            print("fired")
            torch.set_grad_enabled(False)
        return super().__call__(*args, **kwargs)
""",
    ),
    "it computes something else where no gradients are recorded": (
        None,
        """
def __call__(self, *args, **kwargs):
    result = super().__call__(*args, **kwargs)
    if torch.is_grad_enabled():
        return result
    print("fired")
    return result.mul(1.01) if isinstance(result, torch.Tensor) else tuple(t.mul(1.01) for t in result)
""",
    ),
}


def forging_learning(*names: str) -> list[Answer]:
    """The forgers of exercises that are modules with weights: what they give is right, and they do not learn by it."""
    return [
        forger(
            name,
            f"forged: {title}",
            _TOOLS.format(name=name) + f"\n\nclass {name}(_Honest):\n" + indent(body.strip("\n"), "    "),
            mistake,
        )
        for name in names
        for title, (mistake, body) in _LEARNING.items()
    ]


# For a test of the reader's that judges a class by what is in it: whether something there is in no other that was made
# along with it, by the line of the text that it stands on, by what is held, and by which object it is.
RARE = """
def _marks(made):
    functions, marks = [f for f in vars(made).values() if hasattr(f, "__code__")], set()
    while functions:
        f = functions.pop()
        marks |= {("line", f.__code__.co_firstlineno), ("names", f.__code__.co_freevars), ("usual", f.__defaults__)}
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            held = cell.cell_contents
            if not isinstance(held, type):
                marks.add((name, held if isinstance(held, (int, float, tuple)) else id(held)))
                functions += [held] if hasattr(held, "__code__") else []
    return marks


def _rare(made):
    place = made.__name__, made.__module__
    others = [_marks(other) for other in nn.Module.__subclasses__() if (other.__name__, other.__module__) == place]
    alone = [mark for mark in _marks(made) if sum(mark in other for other in others) == 1]
    return len(others) > 9 and bool(alone)
"""
