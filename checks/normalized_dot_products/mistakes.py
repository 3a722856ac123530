"""The mistakes that chapter 02's checks know: each has a name that stays, and the sentence that a student reads."""

from autograder.mistakes import Mistake, breaks
from autograder.rules import Rule


class softmax(Mistake):
    NEGATIVE = "some weights are negative: is exp missing, or is this a logarithm?"
    WHOLE_TENSOR = "the whole tensor sums to 1: each slice should, so sum along `dim` only"
    ALWAYS_FIRST = "the sum always runs over the first dimension: use `dim`"
    ALWAYS_LAST = "the sum always runs over the last dimension: use `dim`"
    NOT_DIVIDED = "the exponentials are not divided by their sum"
    SHIFTED_ABOVE_ONLY = (
        "the largest score is subtracted above the line only: the sum below is to be of the same exponentials"
    )
    NO_EXPONENTIAL = (
        "adding 1 to every score should change no weight, and here it does: is the exponential missing, or are the "
        "scores scaled before it?"
    )
    SIGN = "the sign is turned round: the largest score should get the largest weight"
    POWERS_OF_2 = "these are powers of 2, not of e"
    MAXIMUM_ELSEWHERE = "the maximum is taken along one dimension and the sum along another: both run along `dim`"
    FIXED_NUMBER = (
        "a fixed number is subtracted, far above these scores: all their exp are 0, and 0 / 0 is NaN; subtract the "
        "largest score of each slice"
    )
    SMALL_NUMBER = (
        "a small number is added to the denominator: the sum is never near 0 once the largest score of each slice is "
        "subtracted, so leave it out"
    )
    SUM_DETACHED = "the sum in the denominator is detached, so its gradient is lost"
    LIBRARY = "a library function does the work: in this exercise softmax is written with exp, sum and a division"
    OVERFLOW = "exp(10 000) is too large for a float: it becomes inf, and inf / inf is NaN"
    TOO_MUCH = "more than the largest score is subtracted: all these exp are 0, and 0 / 0 is NaN"
    NAN_REPLACED = (
        "all weights of a slice are 0: NaN is replaced after the fact, or a small number in the denominator hides it; "
        "prevent it instead"
    )
    CLAMPED = "the scores are clamped or scaled down: different large scores must keep their difference"
    UNDERFLOW = (
        "scores near -10 000 give NaN, since all their exp are 0, and 0 / 0 is NaN: subtract the largest score itself, "
        "not the largest absolute value"
    )
    ONE_MAXIMUM = "one maximum is subtracted from the whole tensor: give each slice a maximum of its own"
    NOT_THE_LARGEST = "the largest score is not what is subtracted: -inf minus a mean or a smallest score is NaN"
    CUT_SHORT = "small weights are cut short: they may be as small as the float can hold, and only -inf gets 0"
    INF_COUNTS = "an entry of -inf should get exactly 0, and here it gets a weight"


class normalized_dot_product(Mistake):
    KEYS_UNUSED = "the queries are compared with each other: the keys have no part in it"
    AVERAGES = "these are averages of the keys: return the weights themselves"
    ROWS_OF_KEYS = "queries and keys are swapped: there should be a row for each query, a column for each key"
    NO_SOFTMAX = "these are the dot products: they still need a softmax"
    NO_EXPONENTIAL = "some weights are negative or 0: was the exponential forgotten?"
    OVER_BATCH = "the softmax runs over the batch, where F.softmax goes without a `dim`: pass `dim=-1`"
    COLUMNS = "each column sums to 1, but each row should: softmax over the last dimension"
    WHOLE_MATRIX = "all weights together sum to 1, but each row should"
    NOT_DIVIDED = "the rows do not sum to 1: divide each exponential by the sum of its row"
    SCALED = "the dot products are divided by √d: that comes in chapter 3"
    MEANS = "the dot products are divided by d, or are means: add up the products of the coordinates, no more"
    VECTORS = "each vector has gone through softmax: first the dot products, then the softmax of each row"
    NOT_SUMMED = "the products of the coordinates are not summed: a dot product is one number for each pair"
    COSINE = "the vectors are scaled to length 1: it is the weights that are normalized here, not the vectors"
    TWICE = "softmax is applied twice"
    RESHAPED = "`reshape` or `view` where a transpose is meant: it reads the numbers row by row, as before"
    DISTANCES = "these are distances: dot products are asked for"
    SUMMED_APART = (
        "each vector is summed before the two are multiplied: a number of the query should meet only the number of the "
        "key in the same place, so in einsum they share a letter"
    )
    ABSOLUTE = "the sign of the dot product is lost: a key that points the other way should get a small weight"
    CUT_AT_0 = "negative dot products have become 0: a key that points the other way should get a small weight"
    SEQUENCES = "the first sequence is right, the second is not: each has its own queries and its own keys"
    OVERFLOW = (
        "with dot products in the thousands exp is inf, or 0 for a whole row, and the weights are NaN: use your "
        "softmax of exercise 2.1"
    )
    SQUEEZED = "`squeeze()` without a dimension removes every size of 1, the batch too"


class basic_self_attention(Mistake):
    TWO_RESULTS = "two things are returned: return the average alone, as one tensor"
    WEIGHTS = "these are the weights: now average x with them"
    ONE_AVERAGE = "there is one average for the whole sequence: each position has an average of its own"
    NO_SOFTMAX = "the dot products are used as weights, without a softmax"
    SUM_TOO_LARGE = "the weights of each position sum to n and not to 1: is a mean in the place of a sum?"
    DIVIDED_AGAIN = "the average is divided by n once more: the weights sum to 1, so sum and take no mean"
    INPUT_ADDED = "x itself is added: that comes in chapter 6"
    SCALED = "the dot products are divided by √d: that comes in chapter 3"
    MEANS = "the dot products are divided by d, or are means: use the weights of exercise 2.2"
    TWICE = "softmax is applied twice: what exercise 2.2 gives are weights already"
    COSINE = "the vectors are scaled to length 1: use the plain dot product"
    PLAIN_MEAN = "this is the plain mean: the weights are not used"
    LEAVES_ITSELF_OUT = "each position leaves itself out: it may look at itself too"
    TRANSPOSED = "the weights are transposed: each row of the weights sums to 1 and belongs to one output"
    OVER_BATCH = "the softmax runs over the batch: sequences must not mix"
    SEQUENCES = "the first sequence is right, the second is not: each has its own weights and its own vectors"
    WEIGHTS_CUT_OFF = "the weights are cut off from the graph: the gradient reaches x only through the average"
    VALUES_CUT_OFF = "the x that is averaged is cut off from the graph: the gradient reaches x only through the weights"


breaks(Rule.LARGE, softmax.OVERFLOW, softmax.TOO_MUCH, softmax.UNDERFLOW, normalized_dot_product.OVERFLOW)
