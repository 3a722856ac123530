"""The mistakes that chapter 05's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake, breaks
from autograder.rules import Rule


class is_permutation_equivariant(Mistake):
    NO_BOOL = "the answer is no Python bool"
    UNLIKE_SIDES = "the two sides are not reordered alike: the same permutation before the function and after it"
    NOT_NOTICED = (
        "a difference goes unnoticed: it is dimension 1 that is reordered, by the permutation given, and every number "
        "counts"
    )
    OWN_PERMUTATION = "another permutation than the one given is used"
    EXACT = "the two sides are compared to the last bit: sums in another order differ in their last digits"
    RELATIVE_ONLY = (
        "the two sides are compared by a relative tolerance alone: next to 0, where large numbers cancel, rounding is "
        "relatively large, so an absolute one belongs beside it"
    )
    TOO_STRICT = (
        "differences that are mere rounding count: is the tolerance too small, or are both sides rounded and then "
        "compared exactly? Two numbers that nearly agree may be rounded apart"
    )
    TOO_TOLERANT = "the comparison is far too tolerant: it forgives differences that are no rounding"
    ONE_FEATURE = "a difference in one feature alone goes unnoticed"
    ONE_POSITION = "a difference at some positions alone goes unnoticed: does a loop end at its first turn?"
    ONE_NUMBER_DIFFERS = "a difference in a single number, somewhere in one of many positions, goes unnoticed"
    ONE_SEQUENCE = "a difference in one sequence alone goes unnoticed"
    NO_ABSOLUTE = "differences of one sign go unnoticed: the absolute value comes before the largest"
    ONE_NUMBER = "the answer is wrong for a single number: is something divided by a spread, which it does not have?"


class sinusoidal_encoding(Mistake):
    SWAPPED = "sine and cosine are swapped: even columns are sines"
    HALVES = "all sines come before all cosines: even columns are sines, odd columns cosines"
    FROM_1 = "positions are counted from 1: the first is 0"
    ROW_0 = "row 0 is never filled in: position 0 has sines and cosines too"
    LAST_ROW = "the last row is never filled in: there are as many positions as rows"
    OVERWRITTEN = "the cosines are written over the sines, and the odd columns are left 0"
    NO_COSINES = "the cosines are missing: the odd columns are left 0"
    SINES_TWICE = "the odd columns hold sines, like the even ones: they should hold cosines"
    OWN_FREQUENCY = "a cosine has another frequency than the sine beside it: two neighbouring columns are a pair"
    OWN_DOUBLED = "the exponent is doubled, and each column has a frequency of its own: two neighbours are a pair"
    HALVED = "the exponent is halved: it counts columns, not pairs of them"
    DOUBLED = (
        "the exponent is too large: is 2k, the number of the pair's first column, doubled again, not divided by `dim`, "
        "or divided by `//`, which rounds?"
    )
    DIVIDED = "the angle itself is divided by `dim`: that division belongs in the exponent, so it needs brackets"
    POWER_DIVIDED = (
        "the power of 10000 is divided by `dim`: that division belongs in the exponent, so it needs brackets"
    )
    K_FROM_1 = "the pairs are counted from 1: the first has k = 0, and so the frequency 1"
    EQUAL = "all frequencies are equal: does an integer division make the exponent 0?"
    RISES = "the frequency rises from pair to pair: it should fall"
    LOG10 = "log10 stands where exp needs the natural logarithm"
    BASE_1000 = "the base is 1000, not 10000"
    BASE_9999 = "the base is not quite 10000"
    TRANSPOSED = "the table is transposed: it should have a row for each position"
    EXTRA_DIMENSION = "the table has a dimension too many"
    ODD_ERROR = (
        "an odd `dim` has one sine more than it has cosines, so that a table of angles has a column too many for them"
    )
    ODD_LOSES = "an odd dim loses its last column"
    ODD_GAINS = "an odd dim gets a column too many"
    ODD_EMPTY = "the last column of an odd dim is not filled in"
    ODD_DIVISOR = "the exponent of an odd dim is divided by the next even number, not by dim"
    ODD_HALVED = "the exponent of an odd dim is not divided by dim: does an integer division lose half a pair?"
    COARSE = "the numbers have fewer digits than float32: is a part of the way in half precision?"
    LEARNS = "the encoding requires a gradient: it is a table of constants"


class Positions(Mistake):
    """Of both classes, which join a table to sequences alike."""

    ROW_PER_SEQUENCE = "there is one row for each sequence of the batch: it should be one for each position"
    FROM_1 = "positions are counted from 1: the first one gets row 0"
    LAST_FOR_ALL = "every position gets the row of the last one"
    LAST_ROWS = "the last rows of the table are taken, not the first"
    MULTIPLIED = "the positions are multiplied, not added"
    NO_POSITIONS = "the positions have no part in the result"
    NO_X = "x has no part in the result"
    X_SCALED = "x is scaled by the root of dim: here it should stay as it is"
    FIRST_SEQUENCE = "the first sequence is used for the whole batch"
    POSITIONS_FIRST = "the positions come first: x should"
    ALONG_SEQUENCE = "x and the positions are joined along the sequence, not along the features"
    SUM_BESIDE = "the second half is x plus the positions: it should be the positions alone"
    LIKE_ADD = 'this is what mode "add" should do'
    DEFAULT_MODE = 'the default mode is "concat": it should be "add"'
    DEFAULT_MAX_LEN = "the default of `max_len` is another than the exercise says"
    DEFAULT_DROPOUT = "something is dropped without being asked for: the default of `dropout` is 0"
    NO_DROPOUT = "dropout does nothing in training"
    DROPOUT_ON_X = "dropout acts on x alone: it belongs on the whole result"
    DROPOUT_ON_POSITIONS = "dropout acts on the positions alone: it belongs on the whole result"
    DROPOUT_BEFORE = "dropout acts on x and on the positions before they are added: it belongs on their sum"
    DROPOUT_RATE = "dropout drops another share than `dropout` says, or does not scale up what stays"
    NO_BUFFER = "`pe` is no buffer: it should be registered as one, to move with the module and not be trained"
    BATCH_IN_TABLE = "the table has a dimension for the batch: one row for each position is enough"
    OTHER_TABLE = "the buffer holds other numbers than the encoding: is `sinusoidal_encoding` right, and used as it is?"
    NO_PARAMETER = "`weight` is no parameter: it should be an `nn.Parameter` itself, neither a plain tensor nor a layer"
    NOT_TRAINED = "`weight` does not require a gradient: it should be trained"
    ROWS = 'the weight has another number of rows: one for each position, in mode "expand" one for each distance'
    EQUAL_ROWS = "the rows of `weight` start alike: all positions are the same then"
    START = "`weight` does not start normal with standard deviation 0.1"
    NO_SHIFT = "`max_len` is not added, so that negative distances count rows from the end"
    SIGN_LOST = "the sign is lost: a distance and its negative should get different rows"
    REVERSED = "the sign is reversed: the most negative distance belongs to row 0"
    NEGATIVE_0 = "negative distances are all treated as 0"
    CLAMPED_AFTER = "distances are clamped after `max_len` was added, which loses the positive ones"
    SHIFTED = "the rows are shifted by one"
    AGAIN = "x holds distances already: do not subtract again"
    EARLY = "the largest distance is clamped one too early: it has a row of its own"
    WRAPPED = "far distances are wrapped around, not clamped"
    NOT_CLAMPED = "distances beyond max_len are not clamped before rows are looked up"
    NO_SUCH_ROW = "a row that is not there is looked up for a near distance: is `max_len` added, and only once?"
    SEQUENCES_ONLY = 'mode "expand" is treated like a batch of sequences: it takes distances of any shape'


class rotate(Mistake):
    HALVES = "features k and k + d/2 are turned together, as some libraries do: here neighbours are a pair"
    READ_HALVES = "features k and k + d/2 are read as a pair, but written side by side: neighbours are a pair, in x too"
    MIXED = "two layouts are mixed: features k and k + d/2 are turned together, by the angles of neighbours"
    REPEATED = (
        "the angles of all pairs come once and then once more: each should come twice in a row, for the two features "
        "of its pair"
    )
    DIVIDED = "the angle itself is divided by d: that division belongs in the exponent, so it needs brackets"
    K_FROM_1 = "the pairs are counted from 1: the first has k = 0, and is turned by the position itself"
    BACKWARDS = "the pairs are turned backwards: the minus belongs to the first of the two"
    NOT_USED = (
        "the positions given turn nothing: are 0, 1, 2, … used in their place, or does the exponent of `base` need "
        "brackets?"
    )
    UNZIPPED = "all first halves of the pairs come before all second halves: a pair's two features stand side by side"
    HALVED = "the exponent is halved: it counts features, not pairs"
    DOUBLED = "the exponent is doubled: 2k is already the number of the pair's first feature"
    RISES = "the angles grow from pair to pair: they should shrink"
    EQUAL = "every pair is turned by the same angle: does an integer division make the exponent 0?"
    OVERWRITTEN = "the second of a pair is computed from the first after it was turned: keep the old one"
    SWAPPED = "sine and cosine are swapped"
    ADDED = "the position's vector is added: x should be turned"
    NOT_MIXED = "each feature is multiplied by both cosine and sine: the sine belongs to the other feature of its pair"
    MIRRORED = "a minus is in the wrong place, so that pairs are mirrored"
    NO_MINUS = "both numbers of a turned pair are sums: one is a difference, or lengths change"
    TWO_MINUSES = "both numbers of a turned pair are differences: the second is a sum, or lengths change"
    BASE = "`base` is not used: its default stands in its place"
    WRONG_DIMENSION = (
        "the angles follow the wrong dimension: `positions` belongs to dimension -2, whatever stands before it"
    )
    COARSE = "the result has fewer digits than x: is a part of the way in half precision?"
    HALF_ANGLES = "the angles are kept in the dtype of x: half precision cannot tell far positions apart"


breaks(Rule.START, Positions.START)
