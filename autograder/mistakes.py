"""What is wrong with an answer, as data: mistakes have names, and a check that fails says which one it met, and where.

A course lists the mistakes of an exercise as the members of an enumeration, each with the one sentence that a student
reads:

    class weighted_avg(Mistake):
        TRANSPOSED = "the weights are transposed: `weights[b, i, j]` is how much output i takes from position j"

Checks and wrong answers on record name members, so that a name that does not exist is an error of Python's, and a
sentence can be reworded without anything else changing: what is recorded of a verdict is the member's id.
"""

import re
import traceback
from enum import Enum
from typing import Any, NoReturn

from autograder.rules import Rule, asks
from autograder.verdict import Finding

# Texts of checks are for people: longer lists say less.
_MOST_ITEMS = 8


class Mistake(Enum):
    """A mistake; the members of a subclass are those of one exercise, or of several that go wrong alike."""

    @property
    def id(self) -> str:
        """What stands for it in records: its name as `like-this`, unique within an exercise."""
        return self.name.lower().replace("_", "-")

    @property
    def says(self) -> str:
        """Its one sentence."""
        return self.value


class Common(Mistake):
    """What can go wrong in any exercise."""

    NO_RETURN = "nothing is returned: is there a `return`?"
    NOT_A_TENSOR = "what is returned is no tensor"
    NOT_A_NUMBER = "what is returned is no Python number: `.item()` makes one of a tensor"
    WRONG_DTYPE = (
        "the dtype is not the one that is asked for: a part of the work is done in another precision, or converted"
    )
    COMPLEX = "the result is complex, and should be real"
    NAN = "the result contains NaN"
    CHANGED_IN_PLACE = "an input is changed in place: work on a copy, or avoid `+=`, `[...] =` and `op_()` on it"
    CUT_OFF = (
        "the result is cut off from the graph, so that nothing can learn through it: remove `.detach()`, `.data`, "
        "`.item()`, NumPy, `torch.tensor(...)` or `torch.no_grad()`"
    )
    INPUT_CUT_OFF = (
        "no gradient reaches an input that the result depends on: it is cut off by `.detach()`, `.data` or "
        "`torch.no_grad()`"
    )
    WRONG_GRADIENT = "the values are right and their gradient is not: a part of the way is cut off from the graph"
    NAN_GRADIENT = (
        "the values are right, but their gradient is NaN: a NaN was made on the way and swept up afterwards, as by "
        "`nan_to_num` or `torch.where`"
    )
    PARAMETER_MISSING = "a parameter that the exercise names is missing"
    PARAMETER_SHAPE = "a parameter has another shape than the exercise says"
    PARAMETER_TOO_MANY = "there is a parameter too many: the exercise names all that are needed"
    PARAMETER_UNUSED = (
        "no gradient reaches a parameter: it is not used, or cut off from the result by `.detach()`, `.data` or "
        "`torch.no_grad()`"
    )
    WEIGHTS_KEPT = (
        "a step of an optimizer does not change the result as it should: the layer computes with a copy of its "
        "parameters, made before; read the parameters themselves at each call"
    )
    DROPOUT_IN_EVAL = (
        "two results for the same input after `.eval()`: dropout is still active in evaluation; use an `nn.Dropout`, "
        "or pass `training=self.training`"
    )
    DROPOUT_ASLEEP = "dropout drops nothing in training"
    DROPOUT_REPEATED = (
        "two calls in training drop the same numbers: dropout draws anew at each call, and no draw is kept or seeded"
    )
    DROPOUT_ONE_FOR_ALL = "the same is dropped in each item of a batch: dropout draws for each number on its own"
    DROPOUT_TOGETHER = "whole rows or columns are dropped together: dropout draws for each number on its own"
    NO_GENERATOR = "two runs with generators of the same seed differ: pass `generator` on to whatever draws"
    SEEDED_ANEW = "generators of different seeds give the same: draw from `generator`, do not seed anew"
    SEEDED_AGAIN = "a generator that was drawn from begins anew: draw from `generator` itself, not from its first seed"
    FIXED_SEED = "two runs without a generator give the same: there is a fixed seed inside"
    OTHER_CHANCE = (
        "without a generator two runs after the same `torch.manual_seed` differ: the numbers are not from torch's own"
    )
    MADE_ON_CPU = (
        "a tensor is made on the CPU, so that the code fails when its inputs are on a GPU: use `x.new_zeros(...)`, or "
        "pass `device=x.device`"
    )
    LOOP = "there is a Python loop (`for`, `while`, comprehension, `map` or recursion) where none is allowed"
    NO_ERROR = "nothing is raised where the exercise asks for an error"
    OTHER_ERROR = "another error is raised than the one that the exercise asks for"
    # What nearly always lies behind an error of Python's or torch's own.
    ITEM_OF_MANY = (
        "one number is wanted, by `.item()`, `float()` or a function of `math`, and here is a whole tensor of them: "
        "`torch.exp` and its like take tensors"
    )
    TRUTH_OF_MANY = (
        "`if`, `and`, `or` want one truth value, and here is a whole tensor of them: `.any()` or `.all()` makes one; "
        "`&` and `|` go entry by entry"
    )
    BOOLS_SUBTRACTED = (
        "two tensors of bools are subtracted: make numbers of them first, `.double()`; `^`, which torch advises, loses "
        "the sign"
    )
    ONE_MINUS_BOOLS = "something is subtracted from a mask, or a mask from something: `~mask` turns it round"
    SIZES_DO_NOT_FIT = (
        "two tensors meet whose sizes do not fit: print both shapes just before (often one has lost a dimension, which "
        "a sum, a mean or a maximum keeps with `keepdim=True`, or has two turned round)"
    )
    EINSUM_LETTERS = (
        "an einsum string has more letters for a tensor than it has dimensions, or fewer: each dimension needs one, "
        "and `...` stands for those that have none"
    )
    OTHER_NUMBER_OF_ENTRIES = (
        "`view` or `reshape` is given sizes that do not hold as many numbers as there are: which size goes where?"
    )
    ONES_SQUEEZED = (
        "every dimension of size 1 is missing: a `squeeze()` that names no dimension takes them all, or none was added"
    )
    VIEW_OF_TRANSPOSED = (
        "`.view` reads numbers as they lie in memory, and a transposed tensor's lie in another order: use `.reshape`"
    )
    NUMPY = "NumPy records no gradient: compute with torch; `.detach()`, which torch advises, cuts the gradient off"
    ONLY_VECTORS = "`torch.dot` takes two vectors, and here is a tensor with another number of dimensions"
    LEAF_IN_PLACE = "a parameter is changed in place while gradients are recorded: do it under `torch.no_grad()`"
    CLASSES_LAST = "`cross_entropy` wants the classes in dimension 1: flatten the others, or `.transpose(1, 2)`"
    LOG_OF_0 = "a logarithm is taken of 0, or the root of a negative number: that case needs an answer of its own"
    NOTHING_LEFT = "there is nothing left to draw: all probabilities are 0 or NaN; at least one token has to stay"
    OF_NOTHING = "`min`, `max`, `stack` or `cat` is given nothing: that case needs an answer of its own"
    DIVIDED_BY_0 = "something is divided by 0: the case where there is nothing to count needs an answer of its own"
    MORE_THAN_THERE_ARE = "`topk` is asked for more than there are: ask for `min(k, x.shape[-1])`"
    PAST_THE_END = "a place is asked for that is not there: of n the first is number 0, and the last number n - 1"
    NO_SUCH_DIMENSION = "a dimension is asked for that the tensor does not have: how many has it at this line?"
    NONE_USED = (
        "something is None and used as if it were not: an argument that may be left out, or what a function without "
        "`return` gave"
    )
    PAIR_USED = "a pair is used as if it were a tensor: take it apart first, `output, weights = …`"
    NOT_TAKEN_APART = "what is taken apart has another number of parts than there are names on the left"
    OTHER_ARGUMENTS = (
        "a function or class is called with other arguments than its `def` has: compare names, number and order"
    )
    DTYPES_MIXED = (
        "tensors of two dtypes meet: give what the code makes itself the dtype of what it was handed, by "
        "`x.new_zeros(...)` or `dtype=x.dtype`"
    )
    NOT_FLOATS = (
        "integers or bools go where floating-point numbers are needed: is an argument missing before a mask? Of a mask "
        "`.to(x.dtype)` makes floats"
    )
    NOT_BOOLS = "a mask is needed, and what is used as one is not bool: `.bool()`, or a comparison, makes one"
    FLOAT_INDEX = "a floating-point number is used as a place or a token: divide by `//`, and keep integers"
    NO_LENGTH = "the length is asked for of something that has none, such as a generator: count while you go"
    NO_FORWARD = (
        "a module without a `forward` is called: an `nn.ModuleList` only holds its layers, and in a class of your own "
        "the name is spelled otherwise, or indented too far"
    )
    NEEDED_FOR_GRADIENT = (
        "a tensor that the gradient still needs is changed in place: write `x = x + …` for `x += …`, and join by "
        "`torch.stack` what is filled piece by piece"
    )
    ENDLESS_RECURSION = "a function calls itself without end: does it have the name of the one that it should call?"
    NOT_A_FUNCTION = (
        "brackets follow something that is no function: a name that was given to a value, or a missing operator"
    )
    SHADOWED = (
        "a name is read before it has a value: what a function assigns somewhere is its own everywhere in it, so it "
        "cannot be the name of what is to be used from outside"
    )
    REFUSED = "a `raise` or an `assert` of the answer's own refuses arguments that are right"


# The rule that a check holds an answer to when it looks for one of these.
_BREAKS: dict[Mistake, Rule] = {
    Common.CHANGED_IN_PLACE: Rule.UNCHANGED,
    Common.CUT_OFF: Rule.GRADIENTS,
    Common.INPUT_CUT_OFF: Rule.GRADIENTS,
    Common.WRONG_GRADIENT: Rule.GRADIENTS,
    Common.NAN_GRADIENT: Rule.GRADIENTS,
    Common.PARAMETER_UNUSED: Rule.GRADIENTS,
    Common.PARAMETER_SHAPE: Rule.PARAMETERS,
    Common.PARAMETER_TOO_MANY: Rule.PARAMETERS,
    Common.DROPOUT_IN_EVAL: Rule.DROPOUT,
    Common.DROPOUT_ASLEEP: Rule.DROPOUT,
    Common.DROPOUT_REPEATED: Rule.DROPOUT,
    Common.DROPOUT_ONE_FOR_ALL: Rule.DROPOUT,
    Common.NO_GENERATOR: Rule.CHANCE,
    Common.SEEDED_ANEW: Rule.CHANCE,
    Common.SEEDED_AGAIN: Rule.CHANCE,
    Common.MADE_ON_CPU: Rule.DEVICE,
    Common.LOOP: Rule.LOOPS,
}


def breaks(rule: Rule, *mistakes: Mistake) -> None:
    """Say of a chapter's mistakes that they break a rule: a check that looks for one asks for it."""
    _BREAKS.update(dict.fromkeys(mistakes, rule))


def asks_about(*mistakes: Mistake | None) -> None:
    """Say which mistakes a check looks for: it asks for the rules that they break."""
    asks(*{_BREAKS[mistake] for mistake in mistakes if mistake in _BREAKS})


class Unexplained(Mistake):
    """What was seen where the mistake behind it is not known."""

    VALUES = "some of the numbers are wrong"
    NUMBER = "the number is wrong"
    SHAPE = "the shape is wrong"
    RESULT = "the result is not the right one"
    RAISED = "the code raises an error"


# What an error of Python's or torch's own says, and the mistake that is nearly always behind it; the first that fits.
EXPLAINED: dict[str, Mistake] = {
    "NoneType": Common.NONE_USED,
    "not tuple": Common.PAIR_USED,
    "'tuple' object has no attribute": Common.PAIR_USED,
    "'tuple' and ": Common.PAIR_USED,
    "and 'tuple'": Common.PAIR_USED,
    "cannot be converted to Scalar": Common.ITEM_OF_MANY,
    "only one element tensors can be converted": Common.ITEM_OF_MANY,
    "only integer tensors of a single element": Common.ITEM_OF_MANY,
    "with two bool tensors is not supported": Common.BOOLS_SUBTRACTED,
    "with a bool tensor is not supported": Common.ONE_MINUS_BOOLS,
    "must match the size of tensor": Common.SIZES_DO_NOT_FIT,
    "must match the existing size": Common.SIZES_DO_NOT_FIT,
    "batch2 tensor to be": Common.SIZES_DO_NOT_FIT,
    "shapes cannot be multiplied": Common.SIZES_DO_NOT_FIT,
    "size mismatch, got": Common.SIZES_DO_NOT_FIT,
    "Sizes of tensors must match": Common.SIZES_DO_NOT_FIT,
    "does not broadcast with previously seen size": Common.SIZES_DO_NOT_FIT,
    "expects each tensor to be equal size": Common.SIZES_DO_NOT_FIT,
    "must have same number of dimensions": Common.SIZES_DO_NOT_FIT,
    "to match target batch_size": Common.SIZES_DO_NOT_FIT,
    "number of subscripts in the equation": Common.EINSUM_LETTERS,  # it may end in "no ellipsis was given"
    "is invalid for input of size": Common.OTHER_NUMBER_OF_ENTRIES,
    "Boolean value of Tensor with more than one value is ambiguous": Common.TRUTH_OF_MANY,
    "view size is not compatible with input tensor's size and stride": Common.VIEW_OF_TRANSPOSED,
    "Can't call numpy() on Tensor that requires grad": Common.NUMPY,
    "1D tensors expected": Common.ONLY_VECTORS,
    "a leaf Variable that requires grad is being used in an in-place operation": Common.LEAF_IN_PLACE,
    "Cannot assign non-leaf Tensor to parameter": Common.LEAF_IN_PLACE,
    "does not require grad and does not have a grad_fn": Common.CUT_OFF,
    "modified by an inplace operation": Common.NEEDED_FOR_GRADIENT,
    "math domain error": Common.LOG_OF_0,
    "expected a positive input": Common.LOG_OF_0,
    "iterable argument is empty": Common.OF_NOTHING,
    "is an empty sequence": Common.OF_NOTHING,
    "a non-empty TensorList": Common.OF_NOTHING,
    "a non-empty list of Tensors": Common.OF_NOTHING,
    "Expected reduction dim": Common.OF_NOTHING,
    "division by zero": Common.DIVIDED_BY_0,
    "modulo by zero": Common.DIVIDED_BY_0,
    "ZeroDivisionError": Common.DIVIDED_BY_0,
    "selected index k out of range": Common.MORE_THAN_THERE_ARE,
    "Expected target size": Common.CLASSES_LAST,
    "probability tensor contains either": Common.NOTHING_LEFT,
    "invalid multinomial distribution": Common.NOTHING_LEFT,
    "Dimension out of range": Common.NO_SUCH_DIMENSION,
    "too many indices for": Common.NO_SUCH_DIMENSION,
    "is out of bounds": Common.PAST_THE_END,
    "index out of range": Common.PAST_THE_END,
    "values to unpack": Common.NOT_TAKEN_APART,
    "unexpected keyword argument": Common.OTHER_ARGUMENTS,
    "required positional argument": Common.OTHER_ARGUMENTS,
    "multiple values for argument": Common.OTHER_ARGUMENTS,
    "invalid combination of arguments": Common.OTHER_ARGUMENTS,
    "was given": Common.OTHER_ARGUMENTS,
    "were given": Common.OTHER_ARGUMENTS,
    "the same dtype, but got Bool": Common.NOT_FLOATS,
    "the same dtype, but got Long": Common.NOT_FLOATS,
    "the same dtype, but got: bool": Common.NOT_FLOATS,
    "the same dtype, but got: long int": Common.NOT_FLOATS,
    "scalar type Float but found Bool": Common.NOT_FLOATS,
    "have the same dtype": Common.DTYPES_MIXED,
    "expected scalar type": Common.DTYPES_MIXED,
    "dtypes match": Common.DTYPES_MIXED,
    "must have the same scalar type": Common.DTYPES_MIXED,
    "be cast to the desired output type": Common.DTYPES_MIXED,
    "not implemented for 'Long'": Common.NOT_FLOATS,
    "not implemented for 'Bool'": Common.NOT_FLOATS,
    "not implemented for 'Int'": Common.NOT_FLOATS,
    "converted to type int64_t": Common.NOT_FLOATS,
    "only support floating point": Common.NOT_FLOATS,
    "Expected a floating point or complex tensor": Common.NOT_FLOATS,
    "must be either a floating point or complex dtype": Common.NOT_FLOATS,
    "only supports boolean masks": Common.NOT_BOOLS,
    "condition to be a boolean tensor": Common.NOT_BOOLS,
    "implemented on integer and Boolean-type tensors": Common.NOT_BOOLS,
    '_cpu" not implemented for': Common.NOT_BOOLS,
    "tensors used as indices must be": Common.FLOAT_INDEX,
    "'indices' to have one of the following scalar types": Common.FLOAT_INDEX,
    "for index": Common.FLOAT_INDEX,
    "slices, not float": Common.FLOAT_INDEX,
    "indices (got float)": Common.FLOAT_INDEX,
    "of ints, not float": Common.FLOAT_INDEX,
    "'float' object cannot be interpreted as an integer": Common.FLOAT_INDEX,
    "only applicable to index tensor": Common.FLOAT_INDEX,
    "expected target dtype to be Long": Common.FLOAT_INDEX,
    "has no len()": Common.NO_LENGTH,
    'is missing the required "forward" function': Common.NO_FORWARD,
    "cannot access local variable": Common.SHADOWED,
    "maximum recursion depth exceeded": Common.ENDLESS_RECURSION,
    "object is not callable": Common.NOT_A_FUNCTION,
}


def _explanation(error: BaseException) -> Mistake | None:
    known = next((mistake for sign, mistake in EXPLAINED.items() if sign in str(error)), None)
    return Common.REFUSED if known is None and _refused(error) else known


def _refused(error: BaseException) -> bool:
    """Whether a `raise` or an `assert` in a notebook's own cell is what raised it."""
    told = getattr(error, "student_traceback", "") or "".join(traceback.format_tb(error.__traceback__))
    frames = re.findall(r'^  File "(.+?)", line \d+.*\n    (.*)', told, re.MULTILINE)
    file, line = frames[-1] if frames else ("", "")
    return (file.startswith("<") or "ipykernel" in file) and line.startswith(("raise ", "assert "))


def unwritten(error: BaseException) -> bool:
    """Whether it says that an exercise has not been begun; torch raises errors of the same type."""
    torchs = any(sign in str(error) for sign in ("not implemented for '", "Could not run 'aten::"))
    return isinstance(error, NotImplementedError) and not torchs and _explanation(error) in (None, Common.REFUSED)


class Complaint(AssertionError):
    """A check's own way to fail: what was found, and for a wrong tensor what it should have been.

    Attributes:
        finding: the mistake and the fact.
        expected: what the tensor should have been, if it was one.
        got: what the student's code returned.
    """

    def __init__(self, finding: Finding, expected: Any = None, got: Any = None) -> None:
        super().__init__(str(finding))
        self.finding, self.expected, self.got = finding, expected, got

    def heat_maps(self) -> str:
        """Expected beside got as HTML; empty where they cannot be shown like that."""
        if self.expected is None or self.got is None:
            return ""
        from autograder.heatmap import heat_maps_of  # needs torch, which not every course has

        return heat_maps_of(self.expected, self.got)


def found(
    mistake: Mistake, what: str = "", *, asked: str = "", expected: Any = None, got: Any = None, where: str = ""
) -> Finding:
    """A mistake with the fact that shows it.

    Args:
        mistake: which one.
        what: what was looked at, such as "the result".
        asked: for which arguments, such as "x (2, 3, 4) and width 2".
        expected: what it should have been; a text stands for itself, anything else is written out.
        got: what it was.
        where: which of many numbers, which argument, which parameter.
    """
    right, wrong = _written(expected, got)
    return Finding(mistake.id, mistake.says, what, asked, right, wrong, where)


def raised(error: BaseException, asked: str = "") -> Finding:
    """An exception as a finding: the mistake that is nearly always behind it, where there is one.

    Args:
        error: what was raised, in a student's code or by it.
        asked: for which arguments.
    """
    mistake = _explanation(error) or Unexplained.RAISED
    name = getattr(error, "student_type", type(error).__name__)
    told = f"{name}: {error}" if str(error) else name
    return found(mistake, "the call" if asked else "it", asked=asked, got=told)


def complain(mistake: Mistake, what: str = "", **fact: Any) -> NoReturn:
    """Fail for a mistake; the arguments are those of `found`."""
    raise Complaint(found(mistake, what, **fact))


def expect(holds: Any, mistake: Mistake, what: str = "", **fact: Any) -> None:
    """Fail for a mistake unless something holds; the arguments are those of `found`."""
    asks_about(mistake)
    if not holds:
        complain(mistake, what, **fact)


def _written(expected: Any, got: Any) -> tuple[str, str]:
    if isinstance(expected, float) or isinstance(got, float):
        return _told_apart(expected, got)
    if isinstance(expected, list) and isinstance(got, list):
        return _where_they_differ(expected, got)
    return _text(expected), _text(got)


def _where_they_differ(expected: list, got: list) -> tuple[str, str]:
    """Two lists; where they would be cut before they differ, from the last item that they have in common."""
    pairs = enumerate(zip(expected, got, strict=False))
    same = next((k for k, (one, other) in pairs if one != other), min(len(expected), len(got)))
    if same < _MOST_ITEMS or expected == got:
        return _text(expected), _text(got)
    return _text(["…", *expected[same - 1 :]]), _text(["…", *got[same - 1 :]])


def _told_apart(expected: Any, got: Any) -> tuple[str, str]:
    """Two numbers with as many digits as it takes to see that they differ."""
    if not isinstance(expected, int | float) or not isinstance(got, int | float) or expected == got:
        return _text(expected), _text(got)
    digits = next((n for n in range(6, 18) if f"{expected:.{n}g}" != f"{got:.{n}g}"), 17)
    return f"{expected:.{digits}g}", f"{got:.{digits}g}"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.6g}"
    if hasattr(value, "tolist"):
        return _text(value.tolist())
    if isinstance(value, list | tuple):
        items = [_text(v) for v in value[:_MOST_ITEMS]] + ["…"] * (len(value) > _MOST_ITEMS)
        inside = ", ".join(items)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    return str(value)
